"""The models of Cornac that want TensorFlow, in torch: beside TensorFlow's graph and Adam, written out in NumPy."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest
from scipy.special import expit

from openloop.core.feedback import Feedback
from openloop.errors import InputError
from openloop.learners import CornacModel
from openloop.learners.adapters.tensorflow_random import normal, uniform
from tests.facts import facts

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


def test_moments_move_what_is_outside_the_batch(adapted, torch):
    theta = torch.ones(2, requires_grad=True)
    adam = adapted.TensorFlowAdam([theta], lr=0.1)
    for gradient in ([1.0, 1.0], [1.0, 0.0]):
        theta.grad = torch.tensor(gradient)
        before = theta.detach().clone()
        adam.step()
    by_hand = 0.1 * np.sqrt(1 - 0.999**2) / (1 - 0.9**2) * 0.09 / np.sqrt(0.999 * 0.001)
    assert (before - theta).detach().numpy()[1] == pytest.approx(by_hand, rel=1e-5)


def test_epsilon_is_tensorflows(adapted, torch):
    theta = torch.zeros(1, dtype=torch.float64, requires_grad=True)
    adam = adapted.TensorFlowAdam([theta], lr=1.0)
    theta.grad = torch.full((1,), 1e-8, dtype=torch.float64)
    adam.step()
    # m = 10⁻⁹, √v = √0.001·10⁻⁸, and the rate is √0.001/0.1
    assert theta.item() == pytest.approx(-(0.001**0.5) / 0.1 * 1e-9 / (0.001**0.5 * 1e-8 + 1e-8), rel=1e-6)


def test_wmf_finds_blocks(adapted):
    user, item = np.divmod(np.arange(36), 6)
    same = user // 3 == item // 3
    feedback = Feedback.from_arrays(user[same], item[same], np.ones(same.sum()), users=6, items=6)
    fit = CornacModel(adapted.TorchWMF(k=2, b=0.5, seed=1, learning_rate=0.05, verbose=False)).fit(feedback)
    scores = fit.scores(np.arange(6))
    assert scores[same.reshape(6, 6)].min() > scores[~same.reshape(6, 6)].max() + 0.5


@pytest.mark.parametrize("kind", ["TorchWMF", "TorchGMF", "TorchMLP", "TorchNeuMF"])
def test_a_seed_gives_the_same_bits_and_weights_are_refused(adapted, kind):
    options = {} if kind == "TorchWMF" else {"backend": "pytorch", "learner": adapted.ADAM, "num_epochs": 2}
    fit = partial(CornacModel(getattr(adapted, kind)(seed=3, verbose=False, **options)).fit, log())
    np.testing.assert_array_equal(fit().scores(np.arange(14)), fit().scores(np.arange(14)))
    with pytest.raises(InputError, match=facts("CornacModel", "sample_weight")):
        fit(sample_weight=np.arange(1.0, 1 + len(log())))


# -- the neural models ---------------------------------------------------------------------------------------


def built(adapted, kind, **options):
    model = getattr(adapted, kind)(backend="pytorch", learner=adapted.ADAM, num_epochs=0, seed=5, **options)
    return CornacModel(model).fit(log()).model_.model


def weights(part):
    return part.weight.detach().numpy()


def relu_layers(net, x):
    for layer in net.mlp_model[::2]:
        x = np.maximum(x @ weights(layer).T + layer.bias.detach().numpy(), 0)
    return x


def test_neumf_has_the_default_layers_whatever_its_factors(adapted, torch):
    net = built(adapted, "TorchNeuMF", num_factors=20)
    assert weights(net.gmf.user_embedding).shape == (14, 20)
    assert [weights(layer).shape for layer in net.mlp.mlp_model[::2]] == [(32, 64), (16, 32), (8, 16)]
    assert weights(net.logit).shape == (1, 28)
    u, i = np.array([3, 8]), np.array([1, 6])
    gmf = weights(net.gmf.user_embedding)[u] * weights(net.gmf.item_embedding)[i]
    z = relu_layers(net.mlp, np.hstack([weights(net.mlp.user_embedding)[u], weights(net.mlp.item_embedding)[i]]))
    logit = np.hstack([gmf, z]) @ weights(net.logit)[0]
    found = net(torch.from_numpy(u), torch.from_numpy(i)).detach().numpy()
    np.testing.assert_allclose(found, expit(logit), rtol=1e-6)


@pytest.mark.parametrize("kind", ["TorchGMF", "TorchMLP", "TorchNeuMF"])
def test_the_start_is_tensorflows(adapted, torch, kind):
    net = built(adapted, kind)
    for part in net.modules():
        if isinstance(part, torch.nn.Embedding):
            assert weights(part).std() == pytest.approx(0.01, rel=0.3)
        elif isinstance(part, torch.nn.Linear):
            limit = np.sqrt(3 / part.in_features)
            assert limit / 2 < np.abs(weights(part)).max() <= limit
            assert not part.bias.detach().numpy().any()


def test_users_and_items_start_alike_as_tensorflow_draws_both_from_the_seed(adapted):
    net = built(adapted, "TorchGMF")
    np.testing.assert_array_equal(weights(net.user_embedding)[:9], weights(net.item_embedding))
    np.testing.assert_allclose(weights(net.item_embedding).ravel()[:5], 0.01 * normal(5, 5, 5), rtol=1e-6)
    np.testing.assert_allclose(weights(net.logit)[0], (2 * uniform(8, 5, 5) - 1) * np.sqrt(3 / 8), rtol=1e-5)
