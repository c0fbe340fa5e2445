"""An audit on Spark: from a log of ratings in Parquet to a report on whether weights made a recommender better.

spark-submit … cluster_audit.py s3a://logs/ratings s3a://scratch/audit report.html --user uid --item sku --rating stars

Trains MF and MF-IPS on the same part of the log, ranks all items for the other part, and audits the two rankings.
"""

import argparse
from collections.abc import Sequence
from pathlib import Path

from pyspark.sql import SparkSession
from pyspark.sql import functions as f

import openloop as ol


def main(arguments: Sequence[str] | None = None) -> ol.Audit:
    """Run the audit, write its report, and return what was found."""
    asked = arguments_of(arguments)
    spark = SparkSession.builder.appName("openloop audit").getOrCreate()
    pair = {"user": asked.user, "item": asked.item}
    named = {**pair, "rating": asked.rating}

    # 1. Hold out rows by the MD5 of the pair: every run, engine and order of rows gives the same split, for any rating.
    number = f.md5(f.concat_ws("|", *pair.values()))  # 32 hexadecimal digits, uniformly distributed
    held_out = number < format(round(asked.test * 2**32), "08x")
    log = spark.read.parquet(asked.log)
    if missing := set(named.values()) - set(log.columns):
        raise SystemExit(f"{asked.log} has no {sorted(missing)}, but {log.columns}; pass --user, --item and --rating.")
    log = log.select(*named.values()).withColumn("held_out", held_out)
    facts = f.countDistinct(asked.user), f.countDistinct(asked.item), f.min(asked.rating)
    users, items, least, share = log.agg(*facts, f.avg(f.col("held_out").cast("double"))).first()
    if least is None or least >= asked.threshold:  # p fitted to positives includes the probability of being liked
        raise SystemExit(f"{asked.log} has no rating below {asked.threshold}: give one with what was not liked.")
    sizes = spark.createDataFrame([(users, items, share)], "users long, items long, share double")
    sizes.write.parquet(f"{asked.work}/sizes")  # if the folder exists, this fails before the work begins
    told(f"{users:,} users, {items:,} items, {share:.4f} of the rows held out")

    # 2. Fit p on the whole log, by activity and popularity. Write it once, because every step below reads it.
    seen = ol.propensity.Logistic().fit(log, **pair, population=(users, items))
    seen.with_column(log).write.parquet(f"{asked.work}/log")
    log = spark.read.parquet(f"{asked.work}/log")
    train, test = log.where("not held_out"), log.where("held_out")
    told("propensities written")

    # 3. Train two models that differ only in the weights 1/p, and rank the held-out items among items not trained on.
    ranks = {}
    for name, p in {"MF": None, "MF-IPS": "propensity"}.items():
        model = ol.learners.MF(asked.factors, asked.reg, solver="projected", iterations=asked.iterations, rng=0)
        model.fit(train, **named, propensities=p)
        told(f"{name}: {len(model.history_)} iterations, objective {model.history_[-1]:.6g}", *model.notes_)
        model.ranks(test).write.parquet(f"{asked.work}/ranks/{name}")
        model.release()
        ranks[name] = spark.read.parquet(f"{asked.work}/ranks/{name}")
        told(f"{name}: ranks written")

    # 4. Audit. A held-out candidate is observed with π = p·s/(1 − p·t); s and t are the shares of the two parts.
    scored = ol.scan(
        test,
        **named,
        propensity="propensity",
        propensity_model=seen,  # p does not depend on the rating: the verdict says what follows if it does
        users=users,
        items=items,
        split="random",
    )
    exclude = train.select(*pair.values())
    found = ol.audit(ranks, scored, metrics=asked.metrics, threshold=asked.threshold, exclude=exclude)
    ol.report(found, asked.report)
    told(found.verdict.headline, found.verdict.remedy, asked.report)
    return found


def arguments_of(given: Sequence[str] | None) -> argparse.Namespace:
    """The arguments of the command line."""
    parser = argparse.ArgumentParser(description="An audit on Spark, from a log of ratings in Parquet to a report.")
    parser.add_argument("log", help="Parquet with a row for each rating: a path, or the URL of an object store")
    parser.add_argument("work", help="a new folder or URL for intermediate results: the log with p, and ranks")
    parser.add_argument("report", help="the page to write, on the driver")
    parser.add_argument("--user", default="user")
    parser.add_argument("--item", default="item")
    parser.add_argument("--rating", default="rating")
    parser.add_argument("--test", type=float, default=0.2, help="share of the rows to hold out")
    parser.add_argument("--threshold", type=float, default=4.0, help="an item is relevant from this rating on")
    parser.add_argument("--metrics", nargs="+", default=["recall@10", "adg"])
    parser.add_argument("--factors", type=int, default=64)
    parser.add_argument("--reg", type=float, default=5.0)
    parser.add_argument("--iterations", type=int, default=50)
    asked = parser.parse_args(given)
    if not 0 < asked.test < 1:
        parser.error(f"--test must be between 0 and 1, got {asked.test}; 0.2 is usual")
    if not Path(asked.report).absolute().parent.is_dir():
        parser.error(f"report: {asked.report} is in no folder; create it first")
    return asked


def told(*sentences: str) -> None:
    """Print progress, because each step takes a while."""
    print("\n".join(filter(None, sentences)), flush=True)


if __name__ == "__main__":
    main()
    SparkSession.active().stop()
