"""What bench/run and bench/profile share: starting programs with a time limit, the probe, the machine's description."""
import contextlib
import json
import os
import platform
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
CASES = {"mlp": [ROOT / "bench/cases/mlp.yaml"], "convnet": [ROOT / "bench/cases/convnet.yaml"],
         "convnet-bf16": [ROOT / "bench/cases/convnet.yaml", "--set", "train.precision=bf16"]}
# glibc's allocator told to keep what it has: PyTorch takes thousands of page faults a step without.
TUNED_MALLOC = {"MALLOC_MMAP_THRESHOLD_": "1073741824", "MALLOC_TRIM_THRESHOLD_": "17179869184",
                "MALLOC_TOP_PAD_": "268435456"}


class Failed(Exception):
    pass


def end_group(process):
    """Ends a program that still runs, with all that it started: first politely."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        if process.poll() is None:
            os.killpg(process.pid, number)
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(5)


def end_politely_when_told():
    """SIGTERM becomes an exception, so that no started program is left behind."""
    signal.signal(signal.SIGTERM, lambda number, _: sys.exit(128 + number))


def run_all(commands, limit, environments=None):
    """Starts the commands at the same time and returns their standard outputs; ends all of them at the limit."""
    environments = environments or [{}] * len(commands)
    with contextlib.ExitStack() as stack:
        started = []
        for command, extra in zip(commands, environments):
            out, err = (stack.enter_context(tempfile.TemporaryFile()) for _ in range(2))
            environment = {**os.environ, "OMP_NUM_THREADS": "1", **extra}
            process = subprocess.Popen([str(word) for word in command], stdin=subprocess.DEVNULL, stdout=out, stderr=err,
                                       cwd=ROOT, env=environment, start_new_session=True)
            started.append((process, out, err))
        end, late = time.monotonic() + limit, False
        try:
            for process, _, _ in started:
                try:
                    process.wait(max(0.1, end - time.monotonic()))
                except subprocess.TimeoutExpired:
                    late = True
        finally:  # also when this program itself is told to end
            for process, _, _ in started:
                end_group(process)
        outputs = []
        for command, (process, out, err) in zip(commands, started):
            out.seek(0), err.seek(0)
            outputs.append(out.read().decode(errors="replace"))
            if late or process.returncode != 0:
                why = f"ran past {limit:.0f} s" if late else f"exit code {process.returncode}"
                tail = err.read().decode(errors="replace").strip()[-600:]
                raise Failed(f"{' '.join(str(word) for word in command)}: {why}\n{tail}")
    return outputs


def last_json(text):
    lines = [line for line in text.splitlines() if line.startswith("{")]
    if not lines:
        raise Failed(f"no JSON line in the output:\n{text[-600:]}")
    return json.loads(lines[-1])


def mpirun(ranks):
    command = ["mpirun", "-np", str(ranks)]
    if os.geteuid() == 0:
        command.append("--allow-run-as-root")
    return command + (["--bind-to", "core"] if ranks <= len(os.sched_getaffinity(0)) else ["--oversubscribe"])


class Ours:
    """lockstep's programs of a build directory."""

    def __init__(self, build):
        self.step_program, self.probe_program = build / "bench/bench_step", build / "bench/bench_probe"
        for program in (self.step_program, self.probe_program):
            if not program.is_file():
                raise Failed(f"{program} is missing: build it, or name another build directory with --build")

    def step(self, case, ranks, limit, extra=()):
        command = [self.step_program, *CASES[case], "--set", "device.threads=1", *extra]
        return last_json(run_all([(mpirun(ranks) if ranks > 1 else []) + command], limit)[0])

    def bf16_arithmetic(self):
        """"bf16 (AMX)", "bf16 (AVX-512 bf16)", or None where neither is to be had, or fp32 is faster."""
        result = self.step("mlp", 1, 60, ["--set", "train.precision=bf16", "--warmup", 1, "--steps", 1])
        return result["arithmetic"] if result["native"] else None

    def probe(self, ranks):
        return last_json(run_all([mpirun(ranks) + [self.probe_program]], 60)[0])


class Torch:
    """torch_step.py under a Python that has PyTorch."""

    def __init__(self, python):
        self.python = python

    def step(self, case, ranks, limit, extra=(), tuned=False):
        command = [self.python, ROOT / "bench/torch_step.py", case, "--data", ROOT / "datasets/mnist", *extra]
        environments = [dict(TUNED_MALLOC) if tuned else {} for _ in range(ranks)]
        if ranks > 1:
            with socket.socket() as free:
                free.bind(("127.0.0.1", 0))
                port = free.getsockname()[1]
            for rank, environment in enumerate(environments):
                environment.update(RANK=str(rank), WORLD_SIZE=str(ranks), LOCAL_RANK=str(rank),
                                   LOCAL_WORLD_SIZE=str(ranks), MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port),
                                   GLOO_SOCKET_IFNAME="lo")
        return last_json(run_all([command] * ranks, limit, environments)[0])


class Probe:
    """Says before and after each round whether every core is as fast as it has been seen to be."""

    def __init__(self, ours, ranks, threshold=0.85):
        self.ours, self.ranks, self.threshold = ours, ranks, threshold
        self.best, self.slowest, self.barriers = 0.0, 1.0, []
        for _ in range(4):
            self.calm()

    def calm(self):
        seen = self.ours.probe(self.ranks)
        self.best = max(self.best, *seen["gflops"])
        self.barriers.append(seen["barrier_us"])
        share = min(seen["gflops"]) / self.best
        self.slowest = min(self.slowest, share)
        return share >= self.threshold

    def wait_until_calm(self, tries=4, pause=3):
        for attempt in range(tries):
            if self.calm():
                return True
            if attempt + 1 < tries:
                time.sleep(pause)
        return False

    def text(self):
        return (f"{self.best:.0f} GF/s fp32 per core at best, slowest core ever at {100 * self.slowest:.0f} % of it; "
                f"barrier of {self.ranks} ranks {statistics.median(self.barriers):.2f} us "
                f"({min(self.barriers):.2f} .. {max(self.barriers):.2f})")


def machine():
    name = platform.processor() or platform.machine()
    with contextlib.suppress(OSError):
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                name = line.split(":", 1)[1].strip()
                break
    load = os.getloadavg()[0]
    return f"{name}, {len(os.sched_getaffinity(0))} cores, load {load:.1f}"
