/** Runs the fakes of several accounts of a channel in a process of its own, until its standard input ends. Prints their sections as JSON. */
import { CHANNELS } from '../channels.ts'

const [name, count] = process.argv.slice(2)
const channel = CHANNELS.find((candidate) => candidate.name === name)
if (!channel) throw new Error(`There is no channel '${name}'.`)
const { testing } = channel
const connect = testing.idle?.connect ?? testing.connect
const connected = await Promise.all(Array.from({ length: Number(count) }, () => connect(Date.now)))
console.log(JSON.stringify(connected.map(({ section }) => section)))
process.stdin.on('end', () => process.exit()).resume()
