"""Space on a flat screen: a camera that looks at the origin from far away, and circles to look at."""

import numpy as np
from numpy.typing import ArrayLike, NDArray


def camera(azimuth: float, elevation: float) -> NDArray[np.float64]:
    """Return the rotation whose rows are the screen's right, its up, and the direction towards the eye.

    Parameters
    ----------
    azimuth, elevation : float
        Where the eye stands, in degrees: about the third axis, counter-clockwise from the first, and above the plane
        of the first two.

    Returns
    -------
    ndarray, shape (3, 3)
        ``points @ camera.T`` has the screen coordinates and the nearness to the eye as its three columns.

    Examples
    --------
    >>> (camera(0, 0) @ [0.0, 1.0, 0.0]).tolist()
    [1.0, 0.0, 0.0]
    """
    (sin_a, sin_e), (cos_a, cos_e) = np.sin(np.radians([azimuth, elevation])), np.cos(np.radians([azimuth, elevation]))
    return np.array(
        [
            [-sin_a, cos_a, 0.0],
            [-sin_e * cos_a, -sin_e * sin_a, cos_e],
            [cos_e * cos_a, cos_e * sin_a, sin_e],
        ]
    )


def circle(normal: ArrayLike, radius: float, height: float = 0.0, points: int = 97) -> NDArray[np.float64]:
    """Return a closed circle about the axis `normal`, at `height` along it, shape (points, 3).

    Examples
    --------
    >>> circle([0, 0, 2.0], 1.0, 0.5, points=5).round(6)[:, 2].tolist()
    [0.5, 0.5, 0.5, 0.5, 0.5]
    """
    normal = np.asarray(normal, dtype=np.float64)
    normal = normal / np.linalg.norm(normal)
    across = np.cross(normal, np.eye(3)[np.abs(normal).argmin()])
    across /= np.linalg.norm(across)
    turn = np.linspace(0, 2 * np.pi, points)[:, None]
    return height * normal + radius * (np.cos(turn) * across + np.sin(turn) * np.cross(normal, across))


def front_and_back(curve: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Split a curve in screen coordinates into what is nearer to the eye than the origin and what is further.

    Returns
    -------
    front, back : ndarray, shape (N, 2)
        The same points with NaN, where a line breaks, in place of the other part's.

    Examples
    --------
    >>> front, back = front_and_back(np.array([[0.0, 1.0, 2.0], [1.0, 1.0, -2.0]]))
    >>> front.tolist(), back.tolist()
    ([[0.0, 1.0], [nan, nan]], [[nan, nan], [1.0, 1.0]])
    """
    near = curve[:, 2:] >= 0
    return np.where(near, curve[:, :2], np.nan), np.where(near, np.nan, curve[:, :2])
