"""WMF, GMF, MLP and NeuMF of Cornac as its TensorFlow source has them, trained by PyTorch.

WMF has no other backend in Cornac. GMF, MLP and NeuMF have one in PyTorch, which starts elsewhere, steps otherwise
while gradients are small, and refuses a NeuMF whose last layer is not as wide as its factors. Here these three keep
Cornac's loop, loss and draws of unrated items, and get TensorFlow's start, number by number, and its step.
`CornacModel` wraps all four.

The source is Cornac's models/wmf and models/ncf on TensorFlow 1, with which Jadidinejad et al. (2021) ran.
"""

from __future__ import annotations

from importlib import import_module
from math import prod, sqrt
from typing import Any

import numpy as np

from openloop.core.feedback import Array
from openloop.learners.adapters import tensorflow_random
from openloop.learners.adapters.cornac_models import cornac_module

models, backend = cornac_module("models"), cornac_module("models.ncf.backend_pt")
torch: Any = import_module("torch")
EPSILON = 1e-8  # ε̂ of tf.train.AdamOptimizer
CLIP = 5.0  # Cornac cuts each entry of WMF's gradients to ±5
ADAM = "tensorflow-adam"  # the name under which Cornac's loop finds the optimiser below


class TensorFlowAdam(torch.optim.Adam):
    """Adam with TensorFlow's ε̂: θ ← θ − α·√(1 − β₂ᵗ)/(1 − β₁ᵗ)·m/(√v + ε̂).

    PyTorch has θ − α/(1 − β₁ᵗ)·m/(√(v/(1 − β₂ᵗ)) + ε), the same where ε = ε̂/√(1 − β₂ᵗ). At the first step that ε is
    3·10⁻⁷, which slows whatever has a gradient as small.
    """

    def step(self, closure: Any = None) -> Any:
        """One step, of every entry: where the gradient is 0 the moments of earlier ones decay and still move it."""
        self.steps = getattr(self, "steps", 0) + 1
        for group in self.param_groups:
            group["eps"] = EPSILON / sqrt(1 - group["betas"][1] ** self.steps)
        return super().step(closure)


backend.optimizer_dict[ADAM] = TensorFlowAdam


# -- weighted matrix factorisation ---------------------------------------------------------------------------


class TorchWMF(models.WMF):
    """min Σ_ui c_ui(r_ui − v_uᵀw_i)² + λ_u/2·‖V‖² + λ_v/2·‖W‖², c = a where there is a rating, b and r = 0 elsewhere.

    A step takes a batch of items, with all users: its loss, and the whole of λ_u/2·‖V‖².
    """

    def _fit_cf(self, train_set: Any) -> None:
        R = train_set.csc_matrix  # (U, I)
        U, V = (torch.tensor(start, dtype=torch.float32, requires_grad=True) for start in (self.U, self.V))
        adam = TensorFlowAdam([U, V], lr=self.learning_rate)
        for _ in range(self.max_iter):
            for items in train_set.item_iter(self.batch_size, shuffle=True):
                adam.zero_grad()
                self.loss(R[:, items].toarray(), U, V[torch.from_numpy(items)]).backward()
                torch.nn.utils.clip_grad_value_([U, V], CLIP)
                adam.step()
        self.U, self.V = (factors.detach().numpy() for factors in (U, V))

    def loss(self, ratings: Array, U: Any, V: Any) -> Any:
        """The loss of a batch: `ratings` (U, B), 0 where there is none, `U` (U, K), `V` (B, K)."""
        R = torch.from_numpy(ratings.astype(np.float32))
        C = torch.where(R != 0, float(self.a), float(self.b))
        penalty = self.lambda_u * U.square().sum() + self.lambda_v * V.square().sum()
        return (C * (R - U @ V.T).square()).sum() + penalty / 2


# -- neural models -------------------------------------------------------------------------------------------


class _AsTensorFlow(cornac_module("models.ncf.recom_ncf_base").NCFBase):
    """A model of Cornac's PyTorch backend with TensorFlow's start and Adam."""

    def _build_model_pt(self) -> Any:
        self.learner = ADAM
        return started(self._net(), self.seed)

    def _net(self) -> Any:
        return super()._build_model_pt()


class TorchGMF(_AsTensorFlow, models.GMF):
    """σ(hᵀ(v_u ∘ w_i) + c)."""


class TorchMLP(_AsTensorFlow, models.MLP):
    """σ(hᵀz + c), where z comes of [v_u, w_i] by layers of units, each a ReLU of all before it."""


class TorchNeuMF(_AsTensorFlow, models.NeuMF):
    """σ(hᵀ[v_u ∘ w_i, z] + c): GMF with any number of factors, and MLP with vectors of its own, under one logit."""

    def _net(self) -> Any:
        width, shape = self.layers[-1], (self.num_users, self.num_items)
        # The constructor refuses other factors than `width`; the sum itself takes any.
        net = backend.NeuMF(*shape, width, self.layers, self.act_fn)
        net.gmf = backend.GMF(*shape, self.num_factors)
        net.logit = torch.nn.Linear(self.num_factors + width, 1)
        return net


def started(net: Any, seed: int | None) -> Any:
    """The net with TensorFlow's start: embeddings N(0, 0.01²), kernels U(±√(3/inputs)) (LeCun), biases 0.

    With a seed from 1 to 2³¹ − 2 it is TensorFlow's own, number by number. Each tensor begins the same sequence, as
    there: user 0 and item 0 start as the same vector.
    """
    seeds = (int(np.random.default_rng().integers(2**31)) if seed is None else seed,) * 2  # of graph and operation
    with torch.no_grad():
        for part in net.modules():
            if isinstance(part, torch.nn.Embedding):
                shape = tuple(part.weight.shape)
                z = tensorflow_random.normal(prod(shape), *seeds)
                part.weight.copy_(torch.from_numpy(0.01 * z.reshape(shape)))
            elif isinstance(part, torch.nn.Linear):
                units, inputs = part.weight.shape
                u = tensorflow_random.uniform(units * inputs, *seeds).reshape(inputs, units)
                part.weight.copy_(torch.from_numpy((2 * u - 1).T * sqrt(3 / inputs)))
                part.bias.zero_()
    return net
