/**
 * Re-exports what the connection uses of the library. A bundler finds no named export in a CommonJS module that is imported
 * dynamically, but it finds this one.
 */
export { connect } from 'mqtt'
