// Reads a pin alternately with the agent's tool and with a bare serialport, each over a pseudo-terminal to a simulated board that
// answers at once. Then measures the discovery of boards. `node boards.mjs JOB`, JOB as JSON: {slices, calls, boards}. Prints
// {ours, bare, discoveryMs, found} as JSON: `ours` and `bare` are medians of one round trip in milliseconds.
import { createRequire } from 'node:module'
import { peripheralsSection } from '../../packages/hardware-boards/src/config.ts'
import { boardsFeature } from '../../packages/hardware-boards/src/index.ts'
import { Registry } from '../../packages/hardware-boards/src/registry/registry.ts'
import { systemClock } from '../../packages/kit/src/time/system-clock.ts'
import { memoryKeyValue } from '../../packages/testkit/src/memory-store.ts'
import { findSocat, startSerialLine } from '../../qa/src/serial-line.ts'
import { median } from '../lib/numbers.mjs'

const WARM_UP_SLICES = 3
const job = JSON.parse(process.argv[2])
const require = createRequire(new URL('../../packages/hardware-boards/package.json', import.meta.url))
const { SerialPort } = require('serialport')
const v = require('valibot')
const { signal } = new AbortController()

const log = { debug() {}, info() {}, warn: console.error, error: console.error }
const host = () => ({ clock: systemClock, log, keyValue: memoryKeyValue(), service: () => undefined, dataDir: '/nowhere' })
const config = v.parse(peripheralsSection.schema, {})
const socat = await findSocat()
if ('missing' in socat) throw new Error(socat.missing)

const RESULTS = { ping: 'pong', capabilities: '{"gpio":[4],"board":"board_b"}', gpio_read: '1' }

/** Starts a serial line with a simulated board, which answers each whole line. */
async function boardOnLine() {
  const line = await startSerialLine(socat)
  line.onData((bytes) => {
    for (const text of bytes.toString().split('\n')) {
      if (text === '') continue
      const { id, cmd } = JSON.parse(text)
      void line.write(`{"id":"${id}","ok":true,"result":${JSON.stringify(RESULTS[cmd])}}\n`)
    }
  })
  return line
}

async function bareClient(path) {
  const port = new SerialPort({ path, baudRate: 115_200, autoOpen: false })
  await new Promise((resolve, reject) => port.open((error) => (error ? reject(error) : resolve())))
  let held = ''
  let answered = () => {}
  port.on('data', (bytes) => {
    held += bytes.toString()
    const end = held.indexOf('\n')
    if (end < 0) return
    const { result } = JSON.parse(held.slice(0, end))
    held = held.slice(end + 1)
    answered(result)
  })
  let number = 0
  const read = () =>
    new Promise((resolve) => {
      answered = resolve
      port.write(`{"id":"${++number}","cmd":"gpio_read","args":{"pin":4}}\n`)
    })
  return { read, close: () => new Promise((resolve) => port.close(resolve)) }
}

const seen = (paths, usb) => async () => ({ ports: paths.map((path) => ({ path, usb, location: path })), usb: [] })
const check = async () => undefined
const lines = [await boardOnLine(), await boardOnLine()]
const [ourLine, bareLine] = lines

const usb = { vendor: '2341', product: '0043', serialNumber: '1', manufacturer: null }
const parts = boardsFeature({ scan: seen([ourLine.path], usb), check }).build(host(), config)
const tool = parts.tools.find(({ name }) => name === 'gpio_read')
const context = { client: 'bench', session: null, turn: 'bench', signal, trace: { traceId: '', spanId: '', parentId: null } }
const bareRead = await bareClient(bareLine.path)

async function timed(read, expected) {
  const startMs = performance.now()
  for (let call = 0; call < job.calls; call++) if (!(await read()).includes(expected)) throw new Error('a pin had the wrong value')
  return (performance.now() - startMs) / job.calls
}
const ours = () => timed(() => tool.run({ pin: 4 }, context), '(1)')
const bare = () => timed(bareRead.read, '1')

const slices = []
for (let slice = 0; slice < WARM_UP_SLICES + job.slices; slice++) {
  slices.push(slice % 2 ? { ours: await ours(), bare: await bare() } : { bare: await bare(), ours: await ours() })
}
await parts.close()
await bareRead.close()

while (lines.length < job.boards) lines.push(await boardOnLine())
const registry = new Registry(host(), config, {
  scan: seen(
    lines.slice(0, job.boards).map(({ path }) => path),
    null,
  ),
  check,
})
const startMs = performance.now()
const found = (await registry.discover(signal)).length
const discoveryMs = performance.now() - startMs
if (found !== job.boards) throw new Error(`${found} of ${job.boards} boards were found`)
await registry.close()
for (const line of lines) await line.unplug()

const of = (name) => median(slices.slice(WARM_UP_SLICES).map((slice) => slice[name]))
console.log(JSON.stringify({ ours: of('ours'), bare: of('bare'), discoveryMs, found }))
