/** Sends one command to an MCP2221 and waits for its answer, for a bounded time. */
import { adapterLost, invalidAnswer, noAnswer } from '../adapter-errors.ts'
import type { HidPort } from '../native.ts'
import { COMMAND, REPORT_BYTES } from './mcp2221-report.ts'

export const MCP2221 = 'MCP2221'

const ANSWER_MS_MAX = 500
/** Answers to earlier commands that came too late; they are skipped. */
const STALE_ANSWERS_MAX = 4

/** Sends a command report and returns the answer report. */
export type Exchange = (report: Uint8Array) => Promise<Uint8Array>

/** The result throws `unavailable` when the chip is gone, `upstream_timeout` when it is silent and `upstream` for an invalid answer. */
export const exchangeWith =
  (port: HidPort): Exchange =>
  async (report) => {
    const lost = (cause: unknown): never => {
      throw adapterLost(MCP2221, cause)
    }
    await port.write(report).catch(lost)
    for (let stale = 0; stale <= STALE_ANSWERS_MAX; stale++) {
      const answer = await port.read(ANSWER_MS_MAX).catch(lost)
      if (answer.length === 0) throw noAnswer(MCP2221)
      if (answer.length < REPORT_BYTES) throw invalidAnswer(MCP2221, `${answer.length} of ${REPORT_BYTES} bytes`)
      if (answer[0] === report[0]) return answer
    }
    throw invalidAnswer(MCP2221, 'it belongs to another command')
  }

/** Sends a command that the chip must accept. Throws `upstream` when the chip rejects it. */
export async function exchangeAccepted(exchange: Exchange, report: Uint8Array): Promise<Uint8Array> {
  const answer = await exchange(report)
  if (answer[1] !== 0) throw invalidAnswer(MCP2221, `it rejects the command ${COMMAND_NAMES.get(report[0] ?? 0) ?? report[0]}`)
  return answer
}

const COMMAND_NAMES: ReadonlyMap<number, string> = new Map(Object.entries(COMMAND).map(([name, code]) => [code, name]))
