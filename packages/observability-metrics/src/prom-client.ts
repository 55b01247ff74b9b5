/** What we use of prom-client. Loaded late, and by names that stand still: of a CommonJS module that is imported dynamically a bundle knows none. */
export { Counter, Gauge, Histogram, Registry } from 'prom-client'
