"""Programs among PyTorch's tensors."""

import copy
import pickle

import pytest
from programs import NASTY, RBF, nasty

import gradix as gx
from gradix._transform import Call

torch = pytest.importorskip("torch", reason="PyTorch is not installed")


def reference(x, z, w):
    return torch.exp(-((x[:, None] - z) ** 2).sum(-1)) @ w


@pytest.fixture
def rbf():
    torch.manual_seed(0)
    shapes = [(5, 3), (4, 3), (4,)]
    tensors = [torch.randn(shape, dtype=torch.float64, requires_grad=True) for shape in shapes]
    return gx.torch.function(gx.compile(RBF)), *tensors


@pytest.mark.parametrize("name", NASTY)
def test_gradients_are_those_of_numeric_differentiation(name):
    program, given = nasty(name)
    tensors = [torch.tensor(array, requires_grad=True) for array in given]
    function = gx.torch.function(program)
    assert torch.autograd.gradcheck(function, tensors, check_forward_ad=True, check_undefined_grad=True)
    assert torch.autograd.gradgradcheck(function, tensors)


def test_values_and_gradients(rbf):
    function, x, z, w = rbf
    result = function(x, z, w=w)
    torch.testing.assert_close(result, reference(x, z, w))
    got = torch.autograd.grad(torch.sin(result).sum(), (x, z, w))
    torch.testing.assert_close(got, torch.autograd.grad(torch.sin(reference(x, z, w)).sum(), (x, z, w)))


def test_second_order(rbf):
    function, x, z, w = rbf

    def penalty(f):
        (slope,) = torch.autograd.grad((f(x, z, w) ** 2).sum(), x, create_graph=True)
        return torch.autograd.grad((slope**2).sum(), (x, z, w))

    torch.testing.assert_close(penalty(function), penalty(reference))


def test_tensors_that_need_no_gradient_get_none(rbf):
    function, x, z, w = rbf
    function(x.detach(), z.detach(), w).sum().backward()
    assert x.grad is None and w.grad is not None
    with torch.no_grad():
        assert not function(x, z, w).requires_grad


@pytest.mark.parametrize("dims", [(0, None, None), (None, 1, None), (2, 0, 1)])
def test_vmap(rbf, dims):
    function, *tensors = rbf
    batched = [
        tensor.detach() if dim is None else torch.stack([tensor, 2 * tensor, tensor - 1], dim).detach()
        for tensor, dim in zip(tensors, dims, strict=True)
    ]
    torch.testing.assert_close(torch.vmap(function, dims)(*batched), torch.vmap(reference, dims)(*batched))
    slopes = [
        torch.vmap(torch.func.grad(lambda *a, f=f: f(*a).sum(), (0, 1, 2)), dims)(*batched)
        for f in (function, reference)
    ]
    torch.testing.assert_close(*slopes)


def test_functional_transformations(rbf):
    function, *tensors = rbf
    x, z, w = (tensor.detach() for tensor in tensors)
    for transform in (torch.func.jacrev, torch.func.jacfwd):
        torch.testing.assert_close(transform(function, (0, 1, 2))(x, z, w), transform(reference, (0, 1, 2))(x, z, w))
    loss = [lambda *a, f=f: (f(*a) ** 2).sum() for f in (function, reference)]
    torch.testing.assert_close(*(torch.func.hessian(f, (0, 2))(x, z, w) for f in loss))
    torch.testing.assert_close(*(torch.func.jvp(f, (x, z, w), (x, z, w)) for f in loss))


class Layer(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.weights = torch.nn.Parameter(torch.ones(3))
        self.smooth = gx.torch.function(gx.compile("input x[N], w[K]; y[i] = sum[k] x[i + k] * w[k]"))

    def forward(self, x):
        return self.smooth(x, self.weights)


def test_modules_are_trained():
    torch.manual_seed(0)
    layer, x = Layer(), torch.randn(50)
    wanted = torch.nn.functional.conv1d(x[None, None], torch.tensor([[[0.5, -1.0, 2.0]]]))[0, 0]
    optimiser = torch.optim.Adam(layer.parameters(), 0.1)
    for _ in range(300):
        optimiser.zero_grad()
        loss = ((layer(x) - wanted) ** 2).mean()
        loss.backward()
        optimiser.step()
    torch.testing.assert_close(layer.weights.detach(), torch.tensor([0.5, -1.0, 2.0]), atol=1e-2, rtol=0)
    assert len(layer.state_dict()) == 1
    twin = copy.deepcopy(layer)
    torch.testing.assert_close(twin(x), layer(x))


@pytest.mark.filterwarnings("ignore")
def test_compiled_code_has_one_opaque_operator(rbf):
    function, x, z, w = rbf
    graphs = []

    def backend(graph, _):
        graphs.append(graph)
        return graph.forward

    torch.compile(lambda *a: function(*a) * 2, fullgraph=True, backend=backend)(x, z, w)
    assert "gradix.call" in graphs[0].code
    compiled = torch.compile(lambda *a: torch.sin(function(*a)).sum(), fullgraph=True, backend="aot_eager")
    value = compiled(x, z, w)
    torch.testing.assert_close(value, torch.sin(reference(x, z, w)).sum())
    got = torch.autograd.grad(value, (x, z, w))
    torch.testing.assert_close(got, torch.autograd.grad(torch.sin(reference(x, z, w)).sum(), (x, z, w)))
    several = gx.torch.function(gx.compile("input x[N]; a = sum[i] x[i]; b[i] = x[i]^2"))
    assert torch.compile(lambda x: several(x).b, fullgraph=True, backend="aot_eager")(torch.arange(3.0)).tolist() == [
        0,
        1,
        4,
    ]
    layer = Layer()
    torch.testing.assert_close(
        torch.compile(layer, fullgraph=True, backend="aot_eager")(torch.ones(5)), layer(torch.ones(5))
    )


@pytest.mark.filterwarnings("ignore")
def test_compiled_forward_mode_keeps_its_tangents():
    function = gx.torch.function(gx.compile("input x[N]; y[i] = x[i]^2"))
    x = torch.tensor([1.0, 2.0, 3.0])
    tangent = torch.compile(lambda x: torch.func.jvp(function, (x,), (torch.ones(3),))[1], backend="aot_eager")(x)
    assert tangent.tolist() == [2.0, 4.0, 6.0]
    jacobian = torch.compile(torch.func.jacfwd(function), backend="aot_eager")(x)
    assert jacobian.diag().tolist() == [2.0, 4.0, 6.0]


def test_traces_have_the_operator():
    from torch.fx.experimental.proxy_tensor import make_fx

    function = gx.torch.function(gx.compile("input x[N]; y[i] = x[i]^2"))
    x = torch.tensor([1.0, 2.0, 3.0])
    assert make_fx(function)(torch.ones(3))(x).tolist() == [1.0, 4.0, 9.0]
    slope = torch.func.grad(lambda x: function(x).sum())
    assert make_fx(slope)(torch.ones(3))(x).tolist() == [2.0, 4.0, 6.0]
    assert make_fx(torch.func.vmap(function))(torch.ones(2, 3))(torch.stack([x, x]))[1].tolist() == [1.0, 4.0, 9.0]


def test_functions_of_several_results_can_be_transformed():
    function = gx.torch.function(gx.compile("input x[N]; a = sum[i] x[i]^2; b[i] = 3 * x[i]"))
    x = torch.arange(3.0)
    assert torch.func.vmap(function)(torch.stack([x, x])).a.tolist() == [5.0, 5.0]
    assert torch.func.jacrev(function)(x).a.tolist() == [0.0, 2.0, 4.0]
    assert torch.func.jvp(function, (x,), (torch.ones(3),))[1].b.tolist() == [3.0, 3.0, 3.0]


def test_functions_can_be_pickled():
    function = gx.torch.function(gx.compile(RBF), backend="vm", threads=1)
    again = pickle.loads(pickle.dumps(function))
    assert repr(again) == repr(function) == "<gradix.torch.Function: y[N] of x[N, D], z[M, D], w[M]>"
    layer = pickle.loads(pickle.dumps(Layer()))
    torch.testing.assert_close(layer(torch.ones(5)), torch.full((3,), 3.0))


def test_the_operator_keeps_the_rules_of_pytorch(rbf):
    _, x, z, w = rbf
    from torch import library

    library.opcheck(torch.ops.gradix.call.default, ([x, z, w], gx.compile(RBF).text, "", "auto", 0))


def test_tensors_of_any_strides_are_read(rbf):
    function, x, z, w = rbf
    wide = torch.randn(300, 8, dtype=torch.float64)
    for tensor in (wide[:, ::3], wide.T[:300:3].T, wide.flip(0)[:, :3], wide[::2, 1:4], wide[:1, :3].expand(500, 3)):
        torch.testing.assert_close(function(tensor, z, w), reference(tensor, z, w))
        got = torch.autograd.grad(function(tensor, z, w).sum(), w)
        torch.testing.assert_close(got, torch.autograd.grad(reference(tensor, z, w).sum(), w))


def test_memory_is_shared_and_not_copied(monkeypatch):
    # What the program is run on lies where the tensors lie.
    seen = []
    run = Call.run
    monkeypatch.setattr(Call, "run", lambda self, arrays, *rest: seen.extend(arrays) or run(self, arrays, *rest))
    x = torch.randn(60, 70)
    gx.torch.function(gx.compile("input x[N, M]; y[i] = sum[j] x[i, j]"))(x.T)
    (array,) = seen
    assert array.ctypes.data == x.data_ptr() and array.strides == (4, 280)


def test_types(rbf):
    function, x, z, w = rbf
    scale = gx.torch.function(gx.compile("input x[N], t; y[i] = x[i] * t"))
    single, double = torch.ones(2), torch.ones(2, dtype=torch.float64)
    assert scale(single, 2.0).dtype == torch.float32 and scale(double, 2).dtype == torch.float64
    assert scale(single, torch.tensor(2.0, dtype=torch.float64)).dtype == torch.float64
    assert scale(torch.arange(3), 2.0).dtype == torch.float32
    assert scale(torch.ones(2, dtype=torch.bfloat16), 2.0).dtype == torch.float32
    mixed = torch.ones(2, requires_grad=True)
    scale(mixed, torch.tensor(2.0, dtype=torch.float64)).sum().backward()
    assert mixed.grad.dtype == torch.float32
    with pytest.raises(gx.DtypeError, match="complex"):
        scale(double + 1j, 2.0)


def test_derivatives_without_inputs_keep_their_type():
    function = gx.torch.function(gx.compile("input x[N]; y[i] = floor(x[i])"))
    x = torch.ones(3, requires_grad=True)
    function(x).sum().backward()
    assert x.grad.tolist() == [0.0, 0.0, 0.0] and x.grad.dtype == torch.float32


def test_several_results_and_unused_ones():
    function = gx.torch.function(gx.compile("input x[N]; a = sum[i] x[i]^2; b[i] = 3 * x[i]"))
    x = torch.arange(3.0, requires_grad=True)
    assert function(x).names == ("a", "b")
    assert torch.autograd.grad(function(x).a, x)[0].tolist() == [0.0, 2.0, 4.0]
    assert torch.autograd.grad(function(x).b.sum(), x)[0].tolist() == [3.0, 3.0, 3.0]


def test_sizes_by_name_and_programs_without_arguments():
    count = gx.torch.function(gx.compile("param N; input t; y[i in 0..N] = t * i"))
    t = torch.tensor(2.0, requires_grad=True)
    count(t, N=3).sum().backward()
    assert t.grad.item() == 3.0
    assert gx.torch.function(gx.compile("y[i in 0..3] = i^2"))().tolist() == [0.0, 1.0, 4.0]


def test_mistakes(rbf):
    function, x, z, w = rbf
    with pytest.raises(gx.ShapeError, match="'z'"):
        function(x, z[:, :2], w)
    with pytest.raises(gx.ArgumentError, match="'w'"):
        function(x, z)
    with pytest.raises(gx.ArgumentError, match="'q'"):
        function(x, z, w, q=1)
    for wrong in (None, "text", [[1.0], [1.0, 2.0]], torch.ones(4).to_sparse()):
        with pytest.raises(gx.ArgumentError, match="'w'"):
            function(x, z, wrong)
    with pytest.raises(gx.ArgumentError, match="'N'"):
        gx.torch.function(gx.compile("param N; y[i in 0..N] = i"))(N=2.7)
    with pytest.raises(gx.ArgumentError, match="program"):
        gx.torch.function("input x; y = x")
    with pytest.raises(gx.ArgumentError, match="threads"):
        gx.torch.function(gx.compile(RBF), threads=0)


def test_threads_of_autograd_and_of_gradix(rbf):
    function, x, z, w = rbf
    losses = [function(x * k, z, w).sum() for k in (1.0, 2.0, 3.0)]
    torch.stack(losses).sum().backward()
    wanted = torch.autograd.grad(sum(reference(x * k, z, w).sum() for k in (1.0, 2.0, 3.0)), (x, z, w))
    torch.testing.assert_close((x.grad, z.grad, w.grad), wanted)
