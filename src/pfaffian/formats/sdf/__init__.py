"""SDF, the files of Gazebo."""
