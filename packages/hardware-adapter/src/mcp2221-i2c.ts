/** I2C transactions of an MCP2221, whose engine runs by itself: it is told what to do and asked how far it got. */
import type { AppError } from '@sluice/sdk'
import { garbled, notAcknowledged, stuckBus } from './bus-error.ts'
import { type Exchange, MCP2221 } from './mcp2221-exchange.ts'
import {
  COMMAND,
  cancelReport,
  DATA_BYTES_MAX,
  type EngineStatus,
  engineStatus,
  getDataReport,
  isTimeout,
  readReport,
  receivedData,
  STATE,
  speedReport,
  speedWasTaken,
  statusReport,
  writeReport,
} from './mcp2221-report.ts'

/** Of questions in a row; each takes a millisecond or two, and 256 bytes at the slowest clock take 55. */
const QUESTIONS_MAX = 250
const CANCELS_MAX = 10

export async function setSpeed(exchange: Exchange, speedHz: number): Promise<void> {
  await settle(exchange)
  if (!speedWasTaken(await exchange(speedReport(speedHz)))) throw garbled(MCP2221, 'that it keeps its I2C clock')
}

export async function write(exchange: Exchange, address: number, bytes: Uint8Array): Promise<void> {
  await settle(exchange)
  await send(exchange, COMMAND.write, { address, bytes })
}

/** With a register that is written first, without a stop, and the read begins with a repeated start. */
export async function read(
  exchange: Exchange,
  address: number,
  { length, register }: { length: number; register?: number },
): Promise<Uint8Array> {
  await settle(exchange)
  if (register !== undefined) await send(exchange, COMMAND.writeNoStop, { address, bytes: Uint8Array.of(register) })
  const command = register === undefined ? COMMAND.read : COMMAND.readRepeatedStart
  await begin(exchange, readReport(command, { address, length }), address)
  return collect(exchange, { address, length })
}

/** Brings the engine to rest, whatever was before. */
async function settle(exchange: Exchange): Promise<void> {
  let status = engineStatus(await exchange(statusReport()))
  for (let cancels = 0; status.state !== STATE.idle; cancels++) {
    if (cancels === CANCELS_MAX) throw stuckBus(lineStates(status))
    await exchange(cancelReport())
    status = engineStatus(await exchange(statusReport()))
  }
  if (!status.clockHigh || !status.dataHigh) throw stuckBus(lineStates(status))
}

const lineStates = ({ clockHigh, dataHigh, state }: EngineStatus): string => {
  const low = [...(clockHigh ? [] : ['SCL']), ...(dataHigh ? [] : ['SDA'])]
  return low.length > 0 ? `${low.join(' and ')} held low` : `its engine stays in state ${state}`
}

async function send(
  exchange: Exchange,
  command: typeof COMMAND.write | typeof COMMAND.writeNoStop,
  { address, bytes }: { readonly address: number; readonly bytes: Uint8Array },
): Promise<void> {
  for (let at = 0; at < bytes.length; at += DATA_BYTES_MAX) {
    const part = bytes.subarray(at, at + DATA_BYTES_MAX)
    await begin(exchange, writeReport(command, { address, length: bytes.length, part }), address)
  }
  const wanted = command === COMMAND.write ? STATE.idle : STATE.heldAfterWrite
  for (let questions = 0; questions < QUESTIONS_MAX; questions++) {
    const status = engineStatus(await exchange(statusReport()))
    await refuseFailure(exchange, status, address)
    if (status.state === wanted) return
  }
  throw await abandoned(exchange, 'a write does not end')
}

/** The engine refuses a report while it is busy with the one before. */
async function begin(exchange: Exchange, report: Uint8Array, address: number): Promise<void> {
  for (let questions = 0; questions < QUESTIONS_MAX; questions++) {
    const [, result, state = 0] = await exchange(report)
    if (result === 0) return
    await refuseFailure(exchange, { state, notAcknowledged: false }, address)
  }
  throw await abandoned(exchange, 'the adapter stays busy')
}

async function collect(
  exchange: Exchange,
  { address, length }: { readonly address: number; readonly length: number },
): Promise<Uint8Array> {
  const bytes = new Uint8Array(length)
  let at = 0
  for (let questions = 0; questions < QUESTIONS_MAX; questions++) {
    const data = receivedData(await exchange(getDataReport()))
    if (data && data.length > length - at) throw garbled(MCP2221, 'with more bytes than were asked for')
    if (data && data.length > 0) {
      bytes.set(data, at)
      at += data.length
      if (at === length) return bytes
    } else {
      await refuseFailure(exchange, engineStatus(await exchange(statusReport())), address)
    }
  }
  throw await abandoned(exchange, 'a read does not end')
}

type Failure = Pick<EngineStatus, 'state' | 'notAcknowledged'>

async function refuseFailure(exchange: Exchange, { state, notAcknowledged: refused }: Failure, address: number): Promise<void> {
  if (refused || state === STATE.addressNotAcknowledged) {
    await exchange(cancelReport())
    throw notAcknowledged(address)
  }
  if (isTimeout(state)) throw await abandoned(exchange, 'the adapter gave up waiting')
}

async function abandoned(exchange: Exchange, detail: string): Promise<AppError> {
  await exchange(cancelReport())
  return stuckBus(detail)
}
