"""The data sets that openloop can load: sources, terms, files and documented numbers."""

from __future__ import annotations

from openloop.data.datasets.records import Archive, Dataset, Part, Scale, Shape

_GROUPLENS = "https://files.grouplens.org/datasets"
_RESEARCH = (
    "Research use; with acknowledgement, without implying endorsement; no commercial use and no redistribution without "
    "the permission of GroupLens, University of Minnesota."
)
_SHARED = (
    "Research use; with acknowledgement, without implying endorsement; redistribution under the same terms; no "
    "commercial use without the permission of GroupLens, University of Minnesota."
)
_KUAISHOU = "CC BY-SA 4.0; cite the paper."

_STARS, _HALF_STARS = Scale(least=1, most=5, step=1), Scale(least=0.5, most=5, step=0.5)
_PLAYS, _CLICKS, _RATIOS = Scale(least=1, step=1), Scale(least=0, most=1, step=1), Scale(least=0)


def _movielens(version: str, title: str, terms: str, part: Part, archive: Archive, *shapes: Shape) -> Dataset:
    return Dataset(
        name=f"ml-{version}", title=f"MovieLens {title}", terms=terms, parts=(part,), archive=archive, shapes=shapes,
        home=f"https://grouplens.org/datasets/movielens/{version.removesuffix('-small')}/",
        folders=_MOVIELENS_FOLDERS.get(version, ()), scale=_STARS if version in {"100k", "1m"} else _HALF_STARS,
    )  # fmt: skip


_MOVIELENS_FOLDERS = {"1m": ("ml-1m", "ml-1m-half"), "10m": ("ml-10m", "ml-10M100K")}
_COLONS = Part(role="ratings", patterns=("ratings.dat",))
_HEADED = Part(role="ratings", patterns=("ratings.csv",))


def _in_features(role: str, file: str, holds: str) -> Part:
    return Part(role=role, patterns=(f"user_item_features/{file}", file), optional=True, holds=holds)


# Digests of ml-*.zip, except 10m: tensorflow/datasets, url_checksums/movielens.txt. Of 10m and lastfm-hetrec:
# ISG-Siegen/OmniRec and others alike. Of u.data and open-bandit: many public repositories alike. The MD5 of
# KuaiRec and KuaiRand are those that Zenodo publishes. For the others none is known.
CATALOGUE: tuple[Dataset, ...] = (
    _movielens(
        "100k", "100K", _RESEARCH,
        Part(
            role="ratings", patterns=("u.data",),
            sha256="06416e597f82b7342361e41163890c81036900f418ad91315590814211dca490",
        ),
        Archive(
            url=f"{_GROUPLENS}/movielens/ml-100k.zip", size=4_924_029,
            sha256="50d2a982c66986937beb9ffb3aa76efe955bf3d5c6b761f4e3a7cd717c6a3229",
        ),
        Shape(users=943, items=1_682, rows=100_000),
    ),
    _movielens(
        "1m", "1M", _RESEARCH, _COLONS,
        Archive(
            url=f"{_GROUPLENS}/movielens/ml-1m.zip", size=5_917_549,
            sha256="a6898adb50b9ca05aa231689da44c217cb524e7ebd39d264c56e2832f2c54e20",
        ),
        Shape(users=6_040, items=3_706, rows=1_000_209),
        Shape(users=2_999, items=3_615, rows=487_650, version="the first 2,999 users"),
    ),
    _movielens(
        "10m", "10M", _RESEARCH, _COLONS,
        Archive(
            url=f"{_GROUPLENS}/movielens/ml-10m.zip", size=65_566_137,
            sha256="813c411ccb6122564edfe752e7f80c4dcc5aa25fa94c93622f6877a7ba252862",
        ),
        Shape(users=69_878, items=10_677, rows=10_000_054),
    ),
    _movielens(
        "20m", "20M", _SHARED, _HEADED,
        Archive(
            url=f"{_GROUPLENS}/movielens/ml-20m.zip", size=198_702_078,
            sha256="96f243c338a8665f6bcc89c53edf6ee39162a846940de6b7c8c48aeada765ff3",
        ),
        Shape(users=138_493, items=26_744, rows=20_000_263),
    ),
    _movielens(
        "25m", "25M", _SHARED, _HEADED,
        Archive(
            url=f"{_GROUPLENS}/movielens/ml-25m.zip", size=261_978_986,
            sha256="8b21cfb7eb1706b4ec0aac894368d90acf26ebdfb6aced3ebd4ad5bd1eb9c6aa",
        ),
        Shape(users=162_541, items=59_047, rows=25_000_095),
    ),
    _movielens(
        "latest-small", "latest, small", _SHARED, _HEADED,
        Archive(
            url=f"{_GROUPLENS}/movielens/ml-latest-small.zip", size=978_202,
            sha256="696d65a3dfceac7c45750ad32df2c259311949efec81f0f144fdfb91ebc9e436",
        ),
        Shape(users=610, items=9_724, rows=100_836, version="2018"),
        Shape(users=671, items=9_066, rows=100_004, version="2016"),
    ),
    Dataset(
        name="coat", title="Coat Shopping, with drawn ratings",
        home="https://www.cs.cornell.edu/~schnabts/mnar/",
        terms="None stated; cite Schnabel et al. 2016, Recommendations as Treatments.",
        parts=(
            Part(role="train", patterns=("train.ascii",)),
            Part(role="test", patterns=("test.ascii",)),
            Part(role="propensities", patterns=("propensities.ascii",), optional=True, holds="published propensities"),
            _in_features("user_features", "user_features.ascii", "covariates of users"),
            _in_features("user_names", "user_features_map.txt", "names of the covariates of users"),
            _in_features("item_features", "item_features.ascii", "covariates of items"),
            _in_features("item_names", "item_features_map.txt", "names of the covariates of items"),
        ),
        shapes=(Shape(users=290, items=300, rows=6_960, open_loop=4_640),), scale=_STARS,
        archive=Archive(url="https://www.cs.cornell.edu/~schnabts/mnar/coat.zip"),
    ),
    Dataset(
        name="yahoo-r3", title="Yahoo! R3: songs, with drawn ratings",
        home="https://webscope.sandbox.yahoo.com/catalog.php?datatype=r",
        terms="Academic use; non-commercial, under an agreement signed with Yahoo! Webscope; no redistribution.",
        parts=(
            Part(role="train", patterns=("ydata-ymusic-rating-study-v1_0-train.txt",)),
            Part(role="test", patterns=("ydata-ymusic-rating-study-v1_0-test.txt",)),
        ),
        shapes=(Shape(users=15_400, items=1_000, rows=311_704, open_loop=54_000),), scale=_STARS,
        apply="apply for R3, Yahoo! Music ratings for user selected and randomly selected songs, at "
        "https://webscope.sandbox.yahoo.com, and put ydata-ymusic-rating-study-v1_0-train.txt and "
        "ydata-ymusic-rating-study-v1_0-test.txt there",
    ),
    Dataset(
        name="netflix", title="Netflix Prize",
        home="https://www.kaggle.com/datasets/netflix-inc/netflix-prize-data",
        terms="Non-commercial research; no redistribution; no attempt to identify people (Netflix Prize).",
        parts=(Part(role="ratings", patterns=("training_set/mv_*.txt", "mv_*.txt", "combined_data_*.txt")),),
        shapes=(Shape(users=480_189, items=17_770, rows=100_480_507),), scale=_STARS,
        apply="Netflix no longer offers it: put the original's training_set/mv_*.txt there, or combined_data_*.txt of "
        "https://www.kaggle.com/datasets/netflix-inc/netflix-prize-data, which needs an account",
    ),
    Dataset(
        name="amazon-games", title="Amazon, video games, 2014",
        home="https://jmcauley.ucsd.edu/data/amazon/",
        terms="None stated; cite McAuley et al. 2015 and He and McAuley 2016.",
        parts=(Part(role="ratings", patterns=("ratings_Video_Games.csv", "ratings_Video_Games.csv.gz")),),
        shapes=(Shape(users=826_767, items=50_210, rows=1_324_753),), scale=_STARS,
        archive=Archive(
            url="https://snap.stanford.edu/data/amazon/productGraph/categoryFiles/ratings_Video_Games.csv"
        ),
    ),
    Dataset(
        name="lastfm-hetrec", title="Last.fm, HetRec 2011: plays",
        home="https://grouplens.org/datasets/hetrec-2011/",
        terms="Non-commercial use; cite Cantador et al. 2011, HetRec, and Last.fm.",
        parts=(Part(role="plays", patterns=("user_artists.dat",)),),
        shapes=(Shape(users=1_892, items=17_632, rows=92_834),), scale=_PLAYS,
        archive=Archive(
            url=f"{_GROUPLENS}/hetrec2011/hetrec2011-lastfm-2k.zip",
            sha256="6738f48195667ff03caaab4d32ca9a3133d8cc026b7c3cdaf6ce1010e913c59c",
        ),
    ),
    Dataset(
        name="lastfm-msd", title="Million Song Challenge: plays",
        home="http://millionsongdataset.com/challenge/",
        terms="Non-commercial research; the rules of the challenge at Kaggle; cite McFee et al. 2012.",
        parts=(
            Part(role="plays", patterns=("kaggle_visible_evaluation_triplets.txt", "train_triplets.txt")),
        ),
        shapes=(
            Shape(users=110_000, items=163_206, rows=1_450_933, version="the challenge's visible half"),
            Shape(users=1_019_318, items=384_546, rows=48_373_586, version="the Taste Profile subset"),
        ),
        scale=_PLAYS,
        apply="accept the rules at https://www.kaggle.com/c/msdchallenge and put "
        "kaggle_visible_evaluation_triplets.txt there, or train_triplets.txt of http://millionsongdataset.com/tasteprofile",
    ),
    Dataset(
        name="kuairec", title="KuaiRec 2.0: videos, with a full block",
        home="https://kuairec.com", terms=_KUAISHOU,
        parts=(
            Part(role="big", patterns=("data/big_matrix.csv", "big_matrix.csv")),
            Part(role="small", patterns=("data/small_matrix.csv", "small_matrix.csv")),
        ),
        shapes=(Shape(users=7_176, items=10_728, rows=12_530_806, open_loop=4_676_570),), scale=_RATIOS,
        archive=Archive(
            url="https://zenodo.org/records/18164998/files/KuaiRec.zip", size=431_964_858,
            md5="261550d472c48eff4990fb13c0e5bcf7",
        ),
        folders=("kuairec", "KuaiRec", "KuaiRec 2.0"),
    ),
    Dataset(
        name="kuairand", title="KuaiRand-Pure: videos, some drawn",
        home="https://kuairand.com", terms=_KUAISHOU,
        parts=(
            Part(role="standard", patterns=("data/log_standard_*.csv", "log_standard_*.csv")),
            Part(role="random", patterns=("data/log_random_*.csv", "log_random_*.csv")),
        ),
        shapes=(Shape(users=27_285, items=7_583, rows=1_436_609, open_loop=1_186_059),), scale=_CLICKS,
        archive=Archive(
            url="https://zenodo.org/records/10439422/files/KuaiRand-Pure.tar.gz", size=47_432_272,
            md5="0820331067a3784d9691136f772b35a7",
        ),
        folders=("kuairand", "KuaiRand-Pure"),
    ),
    Dataset(
        name="open-bandit", title="Open Bandit, with propensities",
        home="https://research.zozo.com/data.html",
        terms="CC BY 4.0; cite Saito et al. 2021, Open Bandit Dataset and Pipeline (ZOZO Research).",
        parts=(
            Part(role="bts", patterns=("bts/*/[amw]*.csv",)),
            Part(role="random", patterns=("random/*/[amw]*.csv",)),
        ),
        shapes=(Shape(version="about 26,000,000 impressions"),),
        archive=Archive(
            url="https://research.zozo.com/data_release/open_bandit_dataset.zip", size=412_931_917,
            sha256="e8ec18196582a5937381a1776382ca940689b90a18d2dcd1fb635be6df614d78",
        ),
        folders=("open-bandit", "open_bandit_dataset", "obd"),
        impressions=True,
    ),
)  # fmt: skip
"""The data sets that `load` knows, each with its source, terms and expected contents."""
