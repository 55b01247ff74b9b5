/** I2C transactions of an MCP2221. The chip's I2C engine works on its own: it is given a command and then polled for progress. */
import type { AppError } from '@sluice/sdk'
import { invalidAnswer, notAcknowledged, stuckBus } from '../adapter-errors.ts'
import { type Exchange, MCP2221 } from './mcp2221-exchange.ts'
import {
  COMMAND,
  cancelReport,
  DATA_BYTES_MAX,
  type EngineStatus,
  engineStatus,
  getDataReport,
  isSpeedAccepted,
  isTimeout,
  readReport,
  receivedData,
  STATE,
  speedReport,
  statusReport,
  writeReport,
} from './mcp2221-report.ts'

/** Polls in a row. Each takes a millisecond or two, and 256 bytes at the slowest clock take 55 ms. */
const POLLS_MAX = 250
const CANCELS_MAX = 10

/** Sets the clock of the bus, in hertz. */
export async function setSpeed(exchange: Exchange, speedHz: number): Promise<void> {
  await waitUntilIdle(exchange)
  if (!isSpeedAccepted(await exchange(speedReport(speedHz)))) throw invalidAnswer(MCP2221, 'it rejects the I2C clock')
}

export async function writeBytes(exchange: Exchange, address: number, bytes: Uint8Array): Promise<void> {
  await waitUntilIdle(exchange)
  await send(exchange, COMMAND.write, { address, bytes })
}

/** With `register`, writes that byte first without a stop; the read then begins with a repeated start. */
export async function readBytes(exchange: Exchange, address: number, length: number, register?: number): Promise<Uint8Array> {
  await waitUntilIdle(exchange)
  if (register !== undefined) await send(exchange, COMMAND.writeNoStop, { address, bytes: Uint8Array.of(register) })
  const command = register === undefined ? COMMAND.read : COMMAND.readRepeatedStart
  await submit(exchange, readReport(command, { address, length }), address)
  return receive(exchange, address, length)
}

/** Cancels an unfinished transaction. Throws `upstream_timeout` when a line of the bus is held low. */
async function waitUntilIdle(exchange: Exchange): Promise<void> {
  let status = engineStatus(await exchange(statusReport()))
  for (let cancels = 0; status.state !== STATE.idle; cancels++) {
    if (cancels === CANCELS_MAX) throw stuckBus(busProblem(status))
    await exchange(cancelReport())
    status = engineStatus(await exchange(statusReport()))
  }
  if (!status.clockHigh || !status.dataHigh) throw stuckBus(busProblem(status))
}

const busProblem = ({ clockHigh, dataHigh, state }: EngineStatus): string => {
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
    await submit(exchange, writeReport(command, { address, length: bytes.length, part }), address)
  }
  const finalState = command === COMMAND.write ? STATE.idle : STATE.heldAfterWrite
  for (let polls = 0; polls < POLLS_MAX; polls++) {
    const status = engineStatus(await exchange(statusReport()))
    await throwIfFailed(exchange, status, address)
    if (status.state === finalState) return
  }
  throw await cancelled(exchange, 'a write does not end')
}

/** Sends a command until the engine accepts it; the engine rejects commands while it is busy. */
async function submit(exchange: Exchange, report: Uint8Array, address: number): Promise<void> {
  for (let polls = 0; polls < POLLS_MAX; polls++) {
    const [, result, state = 0] = await exchange(report)
    if (result === 0) return
    await throwIfFailed(exchange, { state, notAcknowledged: false }, address)
  }
  throw await cancelled(exchange, 'the adapter stays busy')
}

async function receive(exchange: Exchange, address: number, length: number): Promise<Uint8Array> {
  const bytes = new Uint8Array(length)
  let at = 0
  for (let polls = 0; polls < POLLS_MAX; polls++) {
    const data = receivedData(await exchange(getDataReport()))
    if (data && data.length > length - at) throw invalidAnswer(MCP2221, 'it has more bytes than requested')
    if (data && data.length > 0) {
      bytes.set(data, at)
      at += data.length
      if (at === length) return bytes
    } else {
      await throwIfFailed(exchange, engineStatus(await exchange(statusReport())), address)
    }
  }
  throw await cancelled(exchange, 'a read does not end')
}

interface EngineFailure {
  readonly state: number
  readonly notAcknowledged: boolean
}

/** Cancels the transaction and throws when the address was not acknowledged or the engine timed out. */
async function throwIfFailed(exchange: Exchange, failure: EngineFailure, address: number): Promise<void> {
  if (failure.notAcknowledged || failure.state === STATE.addressNotAcknowledged) {
    await exchange(cancelReport())
    throw notAcknowledged(address)
  }
  if (isTimeout(failure.state)) throw await cancelled(exchange, 'the adapter stopped waiting')
}

/** Cancels the transaction and returns the error to throw. */
async function cancelled(exchange: Exchange, detail: string): Promise<AppError> {
  await exchange(cancelReport())
  return stuckBus(detail)
}
