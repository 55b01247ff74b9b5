/** `sluice status`: whether the daemon of this data directory runs, and how it is. Exit 1 if it does not. */
import type { CliContext } from '../context.ts'
import { probeDaemon } from '../probe-daemon.ts'

export async function run({ out, json, dataDir }: CliContext): Promise<number> {
  const found = await probeDaemon(dataDir)
  if (json) out.json(found)
  else if (found.running) {
    out.print(`${out.style('green', 'running')} on ${found.url} (pid ${found.pid}, profile ${found.profile}, since ${found.started_at})`)
  } else out.print(`${out.style('red', 'not running')}: ${found.reason}`)
  return found.running ? 0 : 1
}
