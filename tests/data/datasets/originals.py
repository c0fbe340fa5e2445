"""Small data sets in the formats of the originals, a few rows each."""

from __future__ import annotations

from pathlib import Path

KUAIREC = "user_id,video_id,play_duration,video_duration,time,date,timestamp,watch_ratio\n"
KUAIRAND = (
    "user_id,video_id,date,hourmin,time_ms,is_click,is_like,is_follow,is_comment,is_forward,is_hate,long_view,"
    "play_time_ms,duration_ms,profile_stay_time,comment_stay_time,is_profile_enter,is_rand,tab\n"
)
BANDIT = ",timestamp,item_id,position,click,propensity_score,user_feature_0,user-item_affinity_0\n"


def kuairec_row(user, video, ratio, time=1593878903.438):
    written = "" if time is None else time
    return f"{user},{video},13838,10867,2020-07-05 00:08:23.438,20200705,{written},{ratio}\n"


def kuairand_row(user, video, click, time, rand=0):
    return f"{user},{video},20220421,400,{time},{click},0,0,0,0,0,1,151024,104400,0,0,0,{rand},1\n"


FILES = {
    "ml-100k": {"u.data": "196\t242\t3\t881250949\n186\t302\t3\t891717742\n196\t302\t1\t878887116\n"},
    "ml-1m": {"ratings.dat": "1::1193::5::978300760\n1::661::3::978302109\n2::661::4::978298413\n"},
    "ml-10m": {"ratings.dat": "1::122::5::838985046\n1::185::4.5::838983525\n2::122::0.5::838983392\n"},
    "ml-20m": {
        "ratings.csv": "userId,movieId,rating,timestamp\n"
        "1,2,3.5,1112486027\n1,29,3.5,1112484676\n2,2,4.0,974820889\n"
    },
    "ml-25m": {"ratings.csv": "userId,movieId,rating,timestamp\n1,296,5.0,1147880044\n2,296,3.5,1147868817\n"},
    "ml-latest-small": {"ratings.csv": "userId,movieId,rating,timestamp\n1,31,2.5,1260759144\n2,31,3.0,1260759179\n"},
    "coat": {
        "train.ascii": "0 2 0\n5 0 1\n",
        "test.ascii": "3 2 0\n0 0 4\n",
        "propensities.ascii": "1.0e-01 5.0e-01 2.0e-01\n2.5e-01 1.0e-02 1.0e+00\n",
        "user_item_features/user_features.ascii": "0 1\n1 0\n",
        "user_item_features/user_features_map.txt": "gender:men\ngender:women",
        "user_item_features/item_features.ascii": "1 0 1\n0 1 0\n1 0 0\n",
        "user_item_features/item_features_map.txt": "color:black\ncolor:blue\nonfrontpage:yes",
    },
    "yahoo-r3": {
        "ydata-ymusic-rating-study-v1_0-train.txt": "1\t14\t5\n1\t35\t1\n2\t46\t1\n3\t14\t2\n",
        "ydata-ymusic-rating-study-v1_0-test.txt": "1\t46\t1\n2\t14\t3\n",
    },
    "netflix": {
        "training_set/mv_0000001.txt": "1:\n1488844,3,2005-09-06\n822109,5,2005-05-13\n",
        "training_set/mv_0000002.txt": "2:\n822109,4,2005-09-05\n",
    },
    "amazon-games": {
        "ratings_Video_Games.csv": "AB9S9279OZ3QO,0078764343,5.0,1373155200\nA24SSUT5CSW8BH,0078764343,5.0,1377302400\n"
        "AB9S9279OZ3QO,B00000JRSB,4.0,1372550400\n"
    },
    "lastfm-hetrec": {"user_artists.dat": "userID\tartistID\tweight\n2\t51\t13883\n2\t52\t11690\n3\t51\t7\n"},
    "lastfm-msd": {
        "kaggle_visible_evaluation_triplets.txt": "fd50c4007b68a3737fe052d5a4f78ce8aa117f3d\tSOBONKR12A58A7A7E0\t1\n"
        "fd50c4007b68a3737fe052d5a4f78ce8aa117f3d\tSOEGIYH12A6D4FC0E3\t2\n"
        "d7083f5e1d50c264277d624340edaaf3dc16095b\tSOBONKR12A58A7A7E0\t17\n"
    },
    "kuairec": {
        "data/big_matrix.csv": KUAIREC + kuairec_row(0, 3649, 1.5, 20.0) + kuairec_row(0, 3649, 0.5, 10.0)
        + kuairec_row(14, 147, 0.75, 30.0) + kuairec_row(19, 147, 2.0, 40.0),
        "data/small_matrix.csv": KUAIREC + kuairec_row(14, 148, 0.25, None) + kuairec_row(14, 183, 1.25, 5.0),
    },
    "kuairand": {
        "data/log_standard_4_08_to_4_21_pure.csv": KUAIRAND + kuairand_row(0, 7, 1, 100) + kuairand_row(1, 7, 0, 200),
        "data/log_standard_4_22_to_5_08_pure.csv": KUAIRAND + kuairand_row(0, 7, 0, 300) + kuairand_row(1, 9, 1, 400),
        "data/log_random_4_22_to_5_08_pure.csv": KUAIRAND + kuairand_row(1, 8, 1, 350, 1)
        + kuairand_row(0, 9, 0, 360, 1),
    },
    "open-bandit": {
        "bts/all/all.csv": BANDIT + "0,2019-11-24 00:00:22+00:00,79,1,0,0.087125,81ce,0.0\n",
        "bts/all/item_context.csv": ",item_id,item_feature_0\n0,0,-0.49\n",
        "bts/men/men.csv": BANDIT.replace("affinity_0", "affinity_1")
        + "0,2019-11-24 00:00:10+00:00,3,2,1,0.5,81ce,1.0\n",
        "random/all/all.csv": BANDIT + "0,2019-11-24 00:00:07+00:00,14,2,0,0.0125,81ce,0.0\n"
        "1,2019-11-24 00:00:08+00:00,15,3,1,0.0125,cef3,0.0\n",
    },
}  # fmt: skip


def write(name: str, above: Path, **changes: str) -> Path:
    """The data folder, in which the data set now lies; `changes` are other contents, by the stem of the file."""
    for path, text in FILES[name].items():
        file = above / name / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(changes.get(file.stem, text), encoding="utf-8")
    return above


def cells(log) -> list[tuple]:
    """Each row as (user id, item id, rating)."""
    users, items = log.users.ids[log.user].tolist(), log.items.ids[log.item].tolist()
    return list(zip(users, items, log.rating.tolist(), strict=True))
