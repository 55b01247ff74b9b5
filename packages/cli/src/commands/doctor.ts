/** `sluice doctor`: checks this installation; each problem has a cure. Exits with 1 if a check fails. */

import { type DaemonState, runChecks } from '@sluice/daemon/doctor'
import type { ChecksPage, ModelTestFrame } from '@sluice/http/answers'
import { AppError } from '@sluice/sdk'
import { modelTestFrames } from '../api/model-test-frames.ts'
import type { CliContext, Style } from '../context.ts'
import { askRunning, probeDaemon } from '../probe-daemon.ts'

const STYLES: Record<string, Style> = { ok: 'green', warn: 'yellow', fail: 'red' }

export async function run(context: CliContext): Promise<number> {
  const { out, json } = context
  const checks = await runChecks({ ...context, daemon: await findDaemon(context) })
  if (json) out.json(checks)
  else {
    const width = Math.max(...checks.map(({ check }) => check.length))
    const indent = ' '.repeat(width + 8)
    const indented = (text: string) => text.replaceAll('\n', `\n${indent}`)
    for (const { check, status, detail, fix } of checks) {
      out.hint(`${out.style(STYLES[status] ?? 'dim', status.padEnd(4))}  ${check.padEnd(width)}  ${indented(detail)}`)
      if (fix) out.hint(`${indent}${indented(fix)}`)
    }
  }
  return checks.some(({ status }) => status === 'fail') ? 1 : 0
}

/** Finds the daemon and what it has checked itself. The answer may take long, because it reads the whole database. */
async function findDaemon(context: CliContext): Promise<DaemonState> {
  try {
    const daemon = await probeDaemon(context)
    if (!daemon.running) return daemon
    const page = await askRunning(context, (api) => api.get<ChecksPage>('/api/doctor'))
    return { ...daemon, ...page, tryText: tryTextIn(context) }
  } catch (error) {
    if (error instanceof AppError) return { running: false, reason: error.message }
    throw error
  }
}

/** Returns a test of a model that the running daemon makes. It rejects when the daemon still uses another model in its place. */
const tryTextIn =
  (context: CliContext): NonNullable<DaemonState['tryText']> =>
  ({ entry, settings }, signal) =>
    askRunning(context, async (api) => {
      let result: Extract<ModelTestFrame, { type: 'result' }> | undefined
      for await (const frame of modelTestFrames(api, { provider: entry, tests: ['text'] }, signal)) {
        if (frame.type === 'result') result = frame
        if (frame.type === 'started' && (frame.provider !== settings.kind || frame.model !== (settings.model ?? 'default')))
          throw new AppError('conflict', `the running daemon still uses ${frame.provider}:${frame.model}; its log says why`)
      }
      return result
    })
