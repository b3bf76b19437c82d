"""What the plots of all pages have in common."""


def pyplot():
    """Matplotlib without a screen, which draws the same figure as the same bytes."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    matplotlib.rcParams["svg.hashsalt"] = "gradix"
    return plt


def logarithmic(axis, **labels):
    """Both scales, with a grid, and a legend if there is anything to tell apart."""
    axis.set(xscale="log", yscale="log", **labels)
    axis.grid(color="#dddddd", linewidth=0.7)
    for side in ("top", "right"):
        axis.spines[side].set_visible(False)
    if axis.get_legend_handles_labels()[0]:
        axis.legend(frameon=False, fontsize=8)


def save(figure, path):
    figure.tight_layout()
    figure.savefig(path, metadata={"Date": None})
    pyplot().close(figure)
