"""TensorFlow's random numbers, beside what TensorFlow and the authors of Philox print."""

from __future__ import annotations

import pytest

from openloop.learners.adapters.tensorflow_random import normal, philox, uniform

OPERATION = 478_163_327  # what TensorFlow 2 draws for its first operation: random.Random(42).randint(0, 2³¹ − 1)


def test_philox_by_the_known_answer_of_random123():
    assert [hex(word) for word in philox(4, 0, 0)] == ["0x6627e8d5", "0xe169c58d", "0xbc57ac4c", "0x9b00dbd8"]


def test_uniform_values_are_tensorflows():
    # tf.random.set_seed(42); tf.random.uniform((5,))
    expected = [0.6645621, 0.44100678, 0.3528825, 0.46448255, 0.03366041]
    assert uniform(5, 42, OPERATION).tolist() == pytest.approx(expected, abs=1e-7)


def test_normal_values_are_tensorflows():
    # tf.random.set_seed(42); tf.random.normal((3, 2))
    expected = [0.3274685, -0.8426258, 0.3194337, -1.4075519, -2.3880599, -1.0392479]
    assert normal(6, 42, OPERATION).tolist() == pytest.approx(expected, abs=1e-6)
