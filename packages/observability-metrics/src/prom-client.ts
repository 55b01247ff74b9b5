/** Re-exports prom-client by static names, because a bundle does not know the names of a CommonJS module that is imported dynamically. */
export { Counter, Gauge, Histogram, Registry } from 'prom-client'
