/** Proof that a sandbox holds: a file outside it can be neither read nor changed from the inside, one inside can. */
import { randomUUID } from 'node:crypto'
import { readFile, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { RunBare, Sandbox } from '@sluice/sdk'

const SCRIPT = 'cat "$1"; echo changed > "$1"; echo inside > "$TMPDIR/canary" && cat "$TMPDIR/canary"'

/** Why it does not; `undefined` where it does. */
export async function tryCanary(sandbox: Sandbox, folder: string, signal: AbortSignal, run: RunBare): Promise<string | undefined> {
  const canary = `canary ${randomUUID()}`
  const file = join(folder, canary)
  await writeFile(file, canary, { mode: 0o600 })
  try {
    const given = { file: '/bin/sh', args: ['-c', SCRIPT, 'sh', file], cwd: '/', env: {} }
    const command = await sandbox.wrap(given, { writable: [], network: false })
    const { stdout, stderr } = await run(command, signal).finally(() => command.release?.(run))
    if (stdout.includes(canary) || (await readFile(file, 'utf8')) !== canary) return 'a file outside was within reach'
    return stdout === 'inside\n' ? undefined : `a command does not run: ${stderr.trim().split('\n').at(-1)}`
  } finally {
    await rm(file, { force: true })
  }
}
