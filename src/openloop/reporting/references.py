"""The papers that formulas and models come from, as BibTeX entries by key."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Kind = Literal["article", "inproceedings", "book", "misc"]
PLACES = {"article": "journal", "inproceedings": "booktitle", "book": "publisher", "misc": "howpublished"}

JASA = "Journal of the American Statistical Association"
JRSS_B = "Journal of the Royal Statistical Society: Series B (Statistical Methodology)"
NIPS = "Advances in Neural Information Processing Systems"
ICML = "Proceedings of the {} International Conference on Machine Learning"
KDD = "Proceedings of the {} ACM SIGKDD {}Conference on Knowledge Discovery and Data Mining"
RECSYS = "Proceedings of the {} ACM Conference on Recommender Systems"
TOIS = "ACM Transactions on Information Systems"
WSDM = "Proceedings of the {} ACM International Conference on Web Search and Data Mining"


@dataclass(frozen=True, slots=True)
class Reference:
    """A paper or book. Text is UTF-8; authors are "Last, First and Last, First"; what is not certain is left out."""

    key: str
    kind: Kind
    author: str
    title: str
    place: str  # the journal, the proceedings or the publisher
    year: int
    volume: int | None = None
    number: int | None = None
    edition: str | None = None
    note: str | None = None

    def bibtex(self) -> str:
        """The entry; double braces keep the capitals of the title."""
        fields = {
            "author": self.author, "title": f"{{{self.title}}}", PLACES[self.kind]: self.place, "year": self.year,
            "volume": self.volume, "number": self.number, "edition": self.edition, "note": self.note,
        }  # fmt: skip
        lines = [f"  {name} = {{{value}}}," for name, value in fields.items() if value is not None]
        return "\n".join((f"@{self.kind}{{{self.key},", *lines, "}"))


_ALL = (
    # -- evaluation and learning under selection ------------------------------------------------------------
    Reference(
        "schnabel2016", "inproceedings",
        "Schnabel, Tobias and Swaminathan, Adith and Singh, Ashudeep and Chandak, Navin and Joachims, Thorsten",
        "Recommendations as Treatments: Debiasing Learning and Evaluation", ICML.format("33rd"), 2016,
    ),
    Reference(
        "lim2015", "inproceedings", "Lim, Daryl and McAuley, Julian and Lanckriet, Gert",
        "Top-N Recommendation with Missing Implicit Feedback", RECSYS.format("9th"), 2015,
    ),
    Reference(
        "jadidinejad2021", "article", "Jadidinejad, Amir H. and Macdonald, Craig and Ounis, Iadh",
        "The Simpson's Paradox in the Offline Evaluation of Recommendation Systems", TOIS, 2021, 40, 1,
    ),
    Reference(
        "steck2010", "inproceedings", "Steck, Harald",
        "Training and Testing of Recommender Systems on Data Missing Not at Random",
        KDD.format("16th", "International "), 2010,
    ),
    Reference(
        "hernandezlobato2014", "inproceedings",
        "Hernández-Lobato, José Miguel and Houlsby, Neil and Ghahramani, Zoubin",
        "Probabilistic Matrix Factorization with Non-random Missing Data", ICML.format("31st"), 2014,
    ),
    Reference(
        "marlin2009", "inproceedings", "Marlin, Benjamin M. and Zemel, Richard S.",
        "Collaborative Prediction and Ranking with Non-Random Missing Data", RECSYS.format("Third"), 2009,
    ),
    Reference(
        "wang2019", "inproceedings", "Wang, Xiaojie and Zhang, Rui and Sun, Yu and Qi, Jianzhong",
        "Doubly Robust Joint Learning for Recommendation on Data Missing Not at Random", ICML.format("36th"), 2019,
    ),
    Reference(
        "guo2021", "inproceedings",
        "Guo, Siyuan and Zou, Lixin and Liu, Yiding and Ye, Wenwen and Cheng, Suqi and Wang, Shuaiqiang and "
        "Chen, Hechang and Yin, Dawei and Chang, Yi",
        "Enhanced Doubly Robust Learning for Debiasing Post-Click Conversion Rate Estimation",
        "Proceedings of the 44th International ACM SIGIR Conference on Research and Development in Information "
        "Retrieval", 2021,
    ),
    Reference(
        "dai2022", "inproceedings",
        "Dai, Quanyu and Li, Haoxuan and Wu, Peng and Dong, Zhenhua and Zhou, Xiao-Hua and Zhang, Rui and "
        "Zhang, Rui and Sun, Jie",
        "A Generalized Doubly Robust Learning Framework for Debiasing Post-Click Conversion Rate Prediction",
        KDD.format("28th", ""), 2022,
    ),
    Reference(
        "li2023", "inproceedings", "Li, Haoxuan and Lyu, Yan and Zheng, Chunyuan and Wu, Peng",
        "TDR-CL: Targeted Doubly Robust Collaborative Learning for Debiased Recommendations",
        "The Eleventh International Conference on Learning Representations", 2023,
    ),
    Reference(
        "saito2020", "inproceedings",
        "Saito, Yuta and Yaginuma, Suguru and Nishino, Yuta and Sakata, Hayato and Nakata, Kazuhide",
        "Unbiased Recommender Learning from Missing-Not-At-Random Implicit Feedback", WSDM.format("13th"), 2020,
    ),
    # -- estimators -----------------------------------------------------------------------------------------
    Reference(
        "horvitz1952", "article", "Horvitz, Daniel G. and Thompson, Donovan J.",
        "A Generalization of Sampling Without Replacement from a Finite Universe", JASA, 1952, 47, 260,
    ),
    Reference(
        "swaminathan2015", "inproceedings", "Swaminathan, Adith and Joachims, Thorsten",
        "The Self-Normalized Estimator for Counterfactual Learning", NIPS, 2015, 28,
    ),
    Reference(
        "ionides2008", "article", "Ionides, Edward L.",
        "Truncated Importance Sampling", "Journal of Computational and Graphical Statistics", 2008, 17, 2,
    ),
    Reference(
        "robins1994", "article", "Robins, James M. and Rotnitzky, Andrea and Zhao, Lue Ping",
        "Estimation of Regression Coefficients When Some Regressors Are Not Always Observed", JASA, 1994, 89, 427,
    ),
    Reference(
        "chernozhukov2018", "article",
        "Chernozhukov, Victor and Chetverikov, Denis and Demirer, Mert and Duflo, Esther and Hansen, Christian and "
        "Newey, Whitney and Robins, James",
        "Double/Debiased Machine Learning for Treatment and Structural Parameters", "The Econometrics Journal",
        2018, 21, 1,
    ),
    Reference(
        "zhao2019", "article", "Zhao, Qingyuan and Small, Dylan S. and Bhattacharya, Bhaswar B.",
        "Sensitivity Analysis for Inverse Probability Weighting Estimators via the Percentile Bootstrap", JRSS_B,
        2019, 81, 4,
    ),
    Reference(
        "hanley2006", "article", "Hanley, James A. and MacGibbon, Brenda",
        "Creating Non-Parametric Bootstrap Samples Using Poisson Frequencies",
        "Computer Methods and Programs in Biomedicine", 2006, 83, 1,
    ),
    Reference(
        "holm1979", "article", "Holm, Sture",
        "A Simple Sequentially Rejective Multiple Test Procedure", "Scandinavian Journal of Statistics", 1979, 6, 2,
    ),
    Reference(
        "conover1999", "book", "Conover, W. J.", "Practical Nonparametric Statistics", "Wiley", 1999, edition="Third"
    ),
    # -- positions ------------------------------------------------------------------------------------------
    Reference(
        "joachims2017", "inproceedings", "Joachims, Thorsten and Swaminathan, Adith and Schnabel, Tobias",
        "Unbiased Learning-to-Rank with Biased Feedback", WSDM.format("Tenth"), 2017,
    ),
    Reference(
        "swaminathan2017", "inproceedings",
        "Swaminathan, Adith and Krishnamurthy, Akshay and Agarwal, Alekh and Dudík, Miroslav and Langford, John and "
        "Jose, Damien and Zitouni, Imed",
        "Off-policy Evaluation for Slate Recommendation", NIPS, 2017, 30,
    ),
    Reference(
        "li2018", "inproceedings",
        "Li, Shuai and Abbasi-Yadkori, Yasin and Kveton, Branislav and Muthukrishnan, S. and Vinay, Vishwa and "
        "Wen, Zheng",
        "Offline Evaluation of Ranking Policies with Click Models", KDD.format("24th", "International "), 2018,
    ),
    Reference(
        "mcinerney2020", "inproceedings",
        "McInerney, James and Brost, Brian and Chandar, Praveen and Mehrotra, Rishabh and Carterette, Benjamin",
        "Counterfactual Evaluation of Slate Recommendations with Sequential Reward Interactions",
        KDD.format("26th", "International "), 2020,
    ),
    Reference(
        "kiyohara2022", "inproceedings",
        "Kiyohara, Haruka and Saito, Yuta and Matsuhiro, Tatsuya and Narita, Yusuke and Shimizu, Nobuyuki and "
        "Yamamoto, Yasuo",
        "Doubly Robust Off-Policy Evaluation for Ranking Policies under the Cascade Behavior Model",
        WSDM.format("Fifteenth"), 2022,
    ),
    Reference(
        "dudik2011", "inproceedings", "Dudík, Miroslav and Langford, John and Li, Lihong",
        "Doubly Robust Policy Evaluation and Learning", ICML.format("28th"), 2011,
    ),
    Reference(
        "oosterhuis2023", "article", "Oosterhuis, Harrie",
        "Doubly Robust Estimation for Correcting Position Bias in Click Feedback for Unbiased Learning to Rank", TOIS,
        2023,
    ),
    Reference(
        "vardasbi2020", "inproceedings", "Vardasbi, Ali and Oosterhuis, Harrie and de Rijke, Maarten",
        "When Inverse Propensity Scoring Does Not Work: Affine Corrections for Unbiased Learning to Rank",
        "Proceedings of the 29th ACM International Conference on Information and Knowledge Management", 2020,
    ),
    Reference(
        "agarwal2019", "inproceedings",
        "Agarwal, Aman and Zaitsev, Ivan and Wang, Xuanhui and Li, Cheng and Najork, Marc and Joachims, Thorsten",
        "Estimating Position Bias without Intrusive Interventions", WSDM.format("Twelfth"), 2019,
    ),
    Reference(
        "agarwal2019trust", "inproceedings",
        "Agarwal, Aman and Wang, Xuanhui and Li, Cheng and Bendersky, Michael and Najork, Marc",
        "Addressing Trust Bias for Unbiased Learning-to-Rank", "The World Wide Web Conference", 2019,
    ),
    Reference(
        "wang2018", "inproceedings",
        "Wang, Xuanhui and Golbandi, Nadav and Bendersky, Michael and Metzler, Donald and Najork, Marc",
        "Position Bias Estimation for Unbiased Learning to Rank in Personal Search", WSDM.format("Eleventh"), 2018,
    ),
    Reference(
        "ford1957", "article", "Ford, Jr., L. R.",
        "Solution of a Ranking Problem from Binary Comparisons", "The American Mathematical Monthly", 1957, 64, 8,
    ),
    # -- metrics --------------------------------------------------------------------------------------------
    Reference(
        "jarvelin2002", "article", "Järvelin, Kalervo and Kekäläinen, Jaana",
        "Cumulated Gain-Based Evaluation of IR Techniques", TOIS, 2002, 20, 4,
    ),
    Reference(
        "moffat2008", "article", "Moffat, Alistair and Zobel, Justin",
        "Rank-Biased Precision for Measurement of Retrieval Effectiveness", TOIS, 2008, 27, 1,
    ),
    Reference(
        "mcsherry2008", "inproceedings", "McSherry, Frank and Najork, Marc",
        "Computing Information Retrieval Performance Measures Efficiently in the Presence of Tied Scores",
        "Advances in Information Retrieval: 30th European Conference on IR Research", 2008,
    ),
    Reference(
        "ziegler2005", "inproceedings",
        "Ziegler, Cai-Nicolas and McNee, Sean M. and Konstan, Joseph A. and Lausen, Georg",
        "Improving Recommendation Lists Through Topic Diversification",
        "Proceedings of the 14th International Conference on World Wide Web", 2005,
    ),
    # -- propensities ---------------------------------------------------------------------------------------
    Reference(
        "clauset2009", "article", "Clauset, Aaron and Shalizi, Cosma Rohilla and Newman, M. E. J.",
        "Power-Law Distributions in Empirical Data", "SIAM Review", 2009, 51, 4,
    ),
    Reference(
        "davenport2014", "article",
        "Davenport, Mark A. and Plan, Yaniv and van den Berg, Ewout and Wootters, Mary",
        "1-Bit Matrix Completion", "Information and Inference: A Journal of the IMA", 2014, 3, 3,
    ),
    Reference(
        "ma2019", "inproceedings", "Ma, Wei and Chen, George H.",
        "Missing Not at Random in Matrix Completion: The Effectiveness of Estimating Missingness Probabilities Under a "
        "Low Nuclear Norm Assumption", NIPS, 2019, 32,
    ),
    Reference(
        "mccaffrey2004", "article", "McCaffrey, Daniel F. and Ridgeway, Greg and Morral, Andrew R.",
        "Propensity Score Estimation with Boosted Regression for Evaluating Causal Effects in Observational Studies",
        "Psychological Methods", 2004, 9, 4,
    ),
    Reference(
        "deville1992", "article", "Deville, Jean-Claude and Särndal, Carl-Erik",
        "Calibration Estimators in Survey Sampling", JASA, 1992, 87, 418,
    ),
    # -- learners -------------------------------------------------------------------------------------------
    Reference(
        "hu2008", "inproceedings", "Hu, Yifan and Koren, Yehuda and Volinsky, Chris",
        "Collaborative Filtering for Implicit Feedback Datasets",
        "Eighth IEEE International Conference on Data Mining", 2008,
    ),
    Reference(
        "cremonesi2010", "inproceedings", "Cremonesi, Paolo and Koren, Yehuda and Turrin, Roberto",
        "Performance of Recommender Algorithms on Top-N Recommendation Tasks", RECSYS.format("Fourth"), 2010,
    ),
    Reference(
        "wolpert1992", "article", "Wolpert, David H.", "Stacked Generalization", "Neural Networks", 1992, 5, 2
    ),
    Reference(
        "musco2015", "inproceedings", "Musco, Cameron and Musco, Christopher",
        "Randomized Block Krylov Methods for Stronger and Faster Approximate Singular Value Decomposition", NIPS,
        2015, 28,
    ),
    Reference(
        "salah2020", "article", "Salah, Aghiles and Truong, Quoc-Tuan and Lauw, Hady W.",
        "Cornac: A Comparative Framework for Multimodal Recommender Systems", "Journal of Machine Learning Research",
        2020, 21, 95,
    ),
    Reference(
        "jaakkola2000", "article", "Jaakkola, Tommi S. and Jordan, Michael I.",
        "Bayesian Parameter Estimation via Variational Methods", "Statistics and Computing", 2000, 10, 1,
    ),
    Reference(
        "nocedal2006", "book", "Nocedal, Jorge and Wright, Stephen J.", "Numerical Optimization", "Springer", 2006,
        edition="Second",
    ),
    Reference(
        "varadhan2008", "article", "Varadhan, Ravi and Roland, Christophe",
        "Simple and Globally Convergent Methods for Accelerating the Convergence of Any EM Algorithm",
        "Scandinavian Journal of Statistics", 2008, 35, 2,
    ),
    Reference(
        "liu2000", "article", "Liu, Jun S. and Sabatti, Chiara",
        "Generalised Gibbs Sampler and Multigrid Monte Carlo for Bayesian Computation", "Biometrika", 2000, 87, 2,
    ),
    Reference(
        "polson2013", "article", "Polson, Nicholas G. and Scott, James G. and Windle, Jesse",
        "Bayesian Inference for Logistic Models Using Pólya-Gamma Latent Variables", JASA, 2013, 108, 504,
    ),
    Reference(
        "roberts1996", "article", "Roberts, Gareth O. and Tweedie, Richard L.",
        "Exponential Convergence of Langevin Distributions and Their Discrete Approximations", "Bernoulli", 1996, 2, 4,
    ),
    Reference(
        "roberts1998", "article", "Roberts, Gareth O. and Rosenthal, Jeffrey S.",
        "Optimal Scaling of Discrete Approximations to Langevin Diffusions", JRSS_B, 1998, 60, 1,
    ),
    Reference(
        "vehtari2021", "article",
        "Vehtari, Aki and Gelman, Andrew and Simpson, Daniel and Carpenter, Bob and Bürkner, Paul-Christian",
        r"Rank-Normalization, Folding, and Localization: An Improved $\widehat{R}$ for Assessing Convergence of MCMC",
        "Bayesian Analysis", 2021, 16, 2,
    ),
)  # fmt: skip

REFERENCES = {reference.key: reference for reference in _ALL}
