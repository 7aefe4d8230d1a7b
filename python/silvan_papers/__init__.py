"""Five papers on congestion in InfiniBand, reproduced: experiments, studies, targets, figures."""
