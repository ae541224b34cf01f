# Models of R's forecast on series from stdin, forecasts and CPU seconds to stdout, for bench_baselines.py.
suppressPackageStartupMessages({library(forecast); library(jsonlite)})

task <- fromJSON(file("stdin"), simplifyVector = TRUE, simplifyMatrix = FALSE)
fits <- list(
  AutoETS = function(y, h) forecast(ets(y), h = h)$mean,
  Theta = function(y, h) thetaf(y, h = h)$mean,
  AutoARIMA = function(y, h) forecast(auto.arima(y), h = h)$mean
)
start <- sum(proc.time()[1:2])
forecasts <- lapply(task$series, function(values) {
  as.numeric(fits[[task$model]](ts(values, frequency = task$season), task$horizon))
})
seconds <- sum(proc.time()[1:2]) - start
cat(toJSON(list(forecasts = forecasts, seconds = unbox(seconds)), digits = 15), "\n")
