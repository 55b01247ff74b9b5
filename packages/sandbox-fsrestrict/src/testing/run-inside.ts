/** Runs programs in the sandbox, each test in its own workspace, on the real kernel. */
import { spawn } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Sandbox, SandboxPolicy } from '@sluice/sdk'
import { runBare } from '@sluice/testkit/run-bare'

export interface Inside {
  readonly workspace: string
  run(file: string, args: readonly string[], options?: InsideOptions): Promise<{ code: number | null; stdout: string; stderr: string }>
}

export interface InsideOptions {
  readonly policy?: Partial<SandboxPolicy>
  readonly env?: Readonly<Record<string, string>>
}

export async function inWorkspace(sandbox: Sandbox, use: (inside: Inside) => Promise<void>): Promise<void> {
  const workspace = mkdtempSync(join(tmpdir(), 'fsrestrict-work-'))
  const run: Inside['run'] = async (file, args, { policy = {}, env = {} } = {}) => {
    const given = { file, args, cwd: workspace, env: { PATH: '/usr/bin:/bin', HOME: workspace, ...env } }
    const command = await sandbox.wrap(given, { writable: [workspace], network: false, ...policy })
    const { promise, resolve, reject } = Promise.withResolvers<number | null>()
    const child = spawn(command.file, command.args, {
      cwd: command.cwd,
      env: command.env,
      detached: true,
      stdio: ['ignore', 'pipe', 'pipe'],
    })
    const output = { stdout: '', stderr: '' }
    for (const stream of ['stdout', 'stderr'] as const) {
      child[stream].on('data', (chunk: Buffer) => {
        output[stream] += chunk
      })
    }
    child.on('error', reject).on('close', resolve)
    const code = await promise.finally(() => command.release?.(runBare))
    return { code, ...output }
  }
  try {
    await use({ workspace, run })
  } finally {
    rmSync(workspace, { recursive: true, force: true })
  }
}
