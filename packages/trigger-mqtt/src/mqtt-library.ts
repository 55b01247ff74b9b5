/** What we use of the library. Loaded late, and by a name that stands still: of a CommonJS module that is imported dynamically a bundle knows none. */
export { connect } from 'mqtt'
