/** `sluice doctor`: checks this installation; each problem has a cure. Exits with 1 if a check fails. */
import { runChecks } from '@sluice/runtime/doctor'
import type { CliContext, Style } from '../context.ts'
import { probeDaemon } from '../probe-daemon.ts'

const STYLES: Record<string, Style> = { ok: 'green', warn: 'yellow', fail: 'red' }

export async function run(context: CliContext): Promise<number> {
  const { out, json } = context
  const checks = await runChecks({ ...context, daemon: await probeDaemon(context) })
  if (json) out.json(checks)
  else {
    const width = Math.max(...checks.map(({ check }) => check.length))
    const indent = ' '.repeat(width + 8)
    const indented = (text: string) => text.replaceAll('\n', `\n${indent}`)
    for (const { check, status, detail, fix } of checks) {
      out.print(`${out.style(STYLES[status] ?? 'dim', status.padEnd(4))}  ${check.padEnd(width)}  ${indented(detail)}`)
      if (fix) out.print(`${indent}${indented(fix)}`)
    }
  }
  return checks.some(({ status }) => status === 'fail') ? 1 : 0
}
