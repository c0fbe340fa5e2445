"""The models of Cornac that want TensorFlow, in torch: beside TensorFlow's graph and Adam, written out in NumPy."""

from __future__ import annotations

import numpy as np
import pytest

from openloop.core.feedback import Feedback
from openloop.learners import CornacModel

pytestmark = pytest.mark.usefixtures("cornac", "torch")

SHAPE = (14, 9)


@pytest.fixture
def adapted(cornac, torch):
    """The module under test, which imports Cornac and torch."""
    from openloop.learners.adapters import torch_models

    return torch_models


def log(scale: float = 1.0) -> Feedback:
    rng = np.random.default_rng(2)
    user, item = np.nonzero((rng.random(SHAPE) < 0.4) | np.eye(*SHAPE, dtype=bool) | np.eye(*SHAPE, -9, dtype=bool))
    return Feedback.from_arrays(user, item, scale * rng.integers(1, 6, len(user)), users=SHAPE[0], items=SHAPE[1])


# -- TensorFlow's Adam and Cornac's graph of WMF, in double precision ----------------------------------------


class Adam:
    """tf.train.AdamOptimizer of one variable: ε̂ beside √v, before the bias is corrected."""

    def __init__(self, shape, lr=0.001):
        self.m, self.v, self.t, self.lr = np.zeros(shape), np.zeros(shape), 0, lr

    def moved(self, theta, gradient):
        self.t += 1
        self.m = 0.9 * self.m + 0.1 * gradient
        self.v = 0.999 * self.v + 0.001 * gradient**2
        rate = self.lr * np.sqrt(1 - 0.999**self.t) / (1 - 0.9**self.t)
        return theta - rate * self.m / (np.sqrt(self.v) + 1e-8)


def graph(R, U, V, items, a=1.0, b=0.01, penalty=0.01):
    """The loss of a batch of WMF and its gradients, (U, K) and (I, K), of which rows outside the batch are 0."""
    batch, W = R[:, items], V[items]
    C, error = np.where(batch != 0, a, b), R[:, items] - U @ W.T
    loss = (C * error**2).sum() + penalty / 2 * ((U**2).sum() + (W**2).sum())
    gradient = np.zeros_like(V)
    gradient[items] = -2 * (C * error).T @ U + penalty * W
    return loss, -2 * (C * error) @ W + penalty * U, gradient


def start(adapted, feedback, k=3, **options):
    """A fitted model, its data set and its start."""
    dense = np.zeros(SHAPE)
    dense[feedback.user, feedback.item] = feedback.rating
    model = CornacModel(adapted.TorchWMF(k=k, seed=7, verbose=False, **options)).fit(feedback).model_
    begun = adapted.TorchWMF(k=k, seed=7, max_iter=0, verbose=False)
    begun = CornacModel(begun).fit(feedback).model_
    return model, dense, begun.U.astype(float), begun.V.astype(float)


def test_the_loss_and_its_gradients_are_those_of_cornacs_graph(adapted, torch):
    rng = np.random.default_rng(0)
    R, items = np.where(rng.random(SHAPE) < 0.4, rng.integers(1, 6, SHAPE), 0), np.array([4, 0, 7])
    U, V = (rng.normal(size=(n, 3)) for n in SHAPE)
    tensors = [torch.tensor(x, dtype=torch.float64, requires_grad=True) for x in (U, V)]
    model = adapted.TorchWMF(k=3, a=2.0, b=0.1, lambda_u=0.3, lambda_v=0.3)
    loss = model.loss(R[:, items], tensors[0], tensors[1][torch.from_numpy(items)])
    loss.backward()
    expected = graph(R, U, V, items, a=2.0, b=0.1, penalty=0.3)
    assert loss.item() == pytest.approx(expected[0], rel=1e-6)
    for tensor, gradient in zip(tensors, expected[1:], strict=True):
        np.testing.assert_allclose(tensor.grad.numpy(), gradient, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("scale", [0.1, 40.0], ids=["small gradients", "clipped gradients"])
def test_steps_are_those_of_tensorflow(adapted, scale):
    feedback, epochs, batch = log(scale), 6, 4
    model, R, U, V = start(adapted, feedback, max_iter=epochs, batch_size=batch)
    adams, largest = (Adam(U.shape), Adam(V.shape)), 0.0
    data = model.train_set.reset()
    for _ in range(epochs):
        for items in data.item_iter(batch, shuffle=True):
            gradients = graph(R, U, V, items)[1:]
            largest = max(largest, *(np.abs(g).max() for g in gradients))
            U, V = (adam.moved(x, np.clip(g, -5, 5)) for adam, x, g in zip(adams, (U, V), gradients, strict=True))
    assert (largest > 5) == (scale > 1)
    np.testing.assert_allclose(model.U, U, atol=1e-6)
    np.testing.assert_allclose(model.V, V, atol=1e-6)
