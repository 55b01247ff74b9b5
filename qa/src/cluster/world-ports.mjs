// Preloaded into a daemon: its connections to the ports in WORLD_PORTS go to other ports, so that nodes with one configuration reach the
// world over a link of their own.
import { Socket } from 'node:net'

const ports = new Map(Object.entries(JSON.parse(process.env.WORLD_PORTS ?? '{}')))
const { connect } = Socket.prototype
/** `connect` gets its arguments, or one list of them where `net.connect` has read them already. */
const moved = (argument) => {
  if (Array.isArray(argument)) return Object.assign([...argument], { 0: moved(argument[0]) }, symbolsOf(argument))
  if (argument === null || typeof argument !== 'object') return argument
  return { ...argument, port: ports.get(String(argument.port)) ?? argument.port }
}
const symbolsOf = (list) => Object.fromEntries(Object.getOwnPropertySymbols(list).map((symbol) => [symbol, list[symbol]]))
Socket.prototype.connect = function (first, ...rest) {
  return connect.call(this, moved(first), ...rest)
}
