//! From what people have to [`Group`](super::Group) and [`Cluster`](super::Cluster).
