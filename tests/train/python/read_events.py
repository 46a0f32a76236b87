"""What TensorBoard would show of a folder of event files.
usage: read_events.py FOLDER   prints a line per tag: steps | values"""
import os
import sys

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

events = EventAccumulator(sys.argv[1])
events.Reload()
for tag in sorted(events.Tags()["scalars"]):
    scalars = events.Scalars(tag)
    print(tag, *(s.step for s in scalars), "|", *(f"{s.value:.3g}" for s in scalars))
