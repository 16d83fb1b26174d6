#!/bin/sh
# What a new reader does in the first quarter of an hour: install, run a model of their own, see it, ship it.
#
# sh tools/new_reader.sh [FOLDER]      a folder of its own, default a temporary one; PYTHON=python3.12 chooses the interpreter
#
# Nothing of this clone but its sources is used: no .venv, no build.  It ends with "done" or at the first step that fails.
set -eu

here=$(cd "$(dirname "$0")/.." && pwd)
there=${1:-$(mktemp -d)}
mkdir -p "$there"
cd "$there"
step() { echo "== $*"; }

step install
"${PYTHON:-python3}" -m venv env
env/bin/python -m pip install -q "$here"
PATH=$there/env/bin:$PATH
export ASMDNN_CACHE_DIR="$there/cache"
asmdnn setup
asmdnn doctor

step a model of their own
cat > own.py <<'EOF'
import numpy as np
import asmdnn as dnn

rng = np.random.default_rng(0)
weights = lambda *dims: rng.standard_normal(dims).astype(np.float32) / 10
graph = dnn.Graph("own")
image = graph.input("image", (1, 3, 32, 32))
stem = graph.apply("Relu", graph.apply("Conv", image, weights(16, 3, 3, 3), pads=(1, 1, 1, 1)))
pooled = graph.apply("Flatten", graph.apply("GlobalAveragePool", stem))
net = graph.compile(scores=graph.apply("Gemm", pooled, weights(16, 10)))
x = np.ones((1, 3, 32, 32), np.float32)
np.save("x.npy", x)
np.save("scores.npy", net(x))
dnn.quantize(net, {"image": x}, method="weights").save("own.onnx")
print(net)
EOF
python own.py
asmdnn run --check --verify --profile own.onnx

step see it
asmdnn explain --html=own.html own.onnx
asmdnn studio --threads=1,2 --machine=zen3,zen4 --precision=f32 own.onnx
asmdnn explain --primitive=0 --html=layer.html own.onnx

step ship it
asmdnn pack own.onnx -o own.pack
python - <<'EOF'
import numpy as np
import asmdnn as dnn

scores, wanted = dnn.load_pack("own.pack")(np.load("x.npy")), np.load("scores.npy")
assert scores.shape == wanted.shape and np.abs(scores - wanted).max() < 0.05 * np.abs(wanted).max()
EOF
asmdnn export --c=out own.onnx
ls out own.html own.studio.html layer.html own.pack
echo done
