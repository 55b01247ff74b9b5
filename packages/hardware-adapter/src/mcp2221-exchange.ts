/** One command and its answer with an MCP2221: nothing else is taken for the answer, and a chip that is silent does not hold anybody up. */
import { garbled, lost, noAnswer } from './bus-error.ts'
import { REPORT_BYTES } from './mcp2221-report.ts'
import type { HidPort } from './native.ts'

export const MCP2221 = 'MCP2221'

const ANSWER_MS_MAX = 500
/** Answers to commands whose own time was up. */
const STALE_MAX = 4

export type Exchange = (report: Uint8Array) => Promise<Uint8Array>

/** Throws `unavailable` if the chip is gone, `upstream_timeout` if it is silent, `upstream` for what is no answer. */
export const exchangeWith =
  (port: HidPort): Exchange =>
  async (report) => {
    const gone = (cause: unknown): never => {
      throw lost(MCP2221, cause)
    }
    await port.write(report).catch(gone)
    for (let stale = 0; stale <= STALE_MAX; stale++) {
      const answer = await port.read(ANSWER_MS_MAX).catch(gone)
      if (answer.length === 0) throw noAnswer(MCP2221)
      if (answer.length < REPORT_BYTES) throw garbled(MCP2221, `with ${answer.length} of ${REPORT_BYTES} bytes`)
      if (answer[0] === report[0]) return answer
    }
    throw garbled(MCP2221, 'to other commands than it was given')
  }
