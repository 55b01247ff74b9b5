/** The only way to start a process: sandboxed, with nothing inherited, ended for certain (§2.6 `[security.sandbox]`). */
import { access, mkdir, realpath } from 'node:fs/promises'
import { sep } from 'node:path'
import { AppError, type Clock, errorText, type Logger, type Sandbox, type Spawn, type SpawnRequest, type WrappedCommand } from '@sluice/sdk'
import { type CommandLimits, tightened } from './command-limits.ts'
import { createRunBare } from './run-bare.ts'
import { runProcess } from './run-process.ts'

export interface SpawnOptions {
  /** The chosen backend; the first spawn waits for the choice. */
  readonly sandbox: () => Sandbox | Promise<Sandbox>
  /** `[security.sandbox] required`: without isolation nothing runs. */
  readonly required: boolean
  readonly limits: CommandLimits
  /** Folders of the daemon that it reads keys, settings or code from: no sandbox keeps them closed inside a writable folder. */
  readonly closed: readonly string[]
  readonly log: Logger
  readonly clock: Clock
}

/**
 * Folders of `policy.writable` that are missing are made, for their owner alone, and the sandbox gets them and the working
 * folder without links.
 */
export function createSpawn({ sandbox, required, limits, closed, log, clock }: SpawnOptions): Spawn {
  const run = createRunBare(clock)
  return async (request) => {
    const chosen = await sandbox()
    const prepared = await prepare(request, limits)
    if (chosen.strength > 0) await checkClosed(prepared.policy.writable, closed)
    const command = await wrap(chosen, prepared)
    try {
      if (required && chosen.strength === 0) throw new AppError('unavailable', 'a sandbox is required, and none works on this machine')
      if (request.signal.aborted) throw new AppError('aborted', `'${request.file}' was not started`)
      return { ...(await runProcess(command, request, clock)), sandbox: chosen.name }
    } finally {
      await command.release?.(run).catch((error: unknown) => log.warn('a sandbox left something behind', { sandbox: chosen.name, error }))
    }
  }
}

async function prepare(request: SpawnRequest, limits: CommandLimits): Promise<SpawnRequest> {
  const writable: string[] = []
  for (const folder of request.policy.writable) {
    await mkdir(folder, { recursive: true, mode: 0o700 }).catch((cause: unknown) => {
      throw new AppError('unavailable', `the folder '${folder}' could not be made`, { cause })
    })
    writable.push(await realFolder(folder))
  }
  const devices = await Promise.all((request.policy.devices ?? []).map(ifThere))
  const policy = { ...request.policy, writable, ...(devices.length > 0 && { devices: devices.flat() }) }
  return { ...request, cwd: await realFolder(request.cwd), policy: tightened(policy, limits) }
}

/** Throws `forbidden` if a command could write in one of the closed folders. */
async function checkClosed(writable: readonly string[], closed: readonly string[]): Promise<void> {
  const inner = await Promise.all(closed.map((folder) => realpath(folder).catch(() => folder)))
  for (const folder of writable) {
    const found = inner.find((path) => path === folder || path.startsWith(folder.endsWith(sep) ? folder : folder + sep))
    if (found === undefined) continue
    throw new AppError(
      'forbidden',
      `no command runs: '${folder}' holds '${found}', where a command could change what the daemon runs. Set [agent] workspace to a folder without it.`,
    )
  }
}

async function ifThere(device: string): Promise<string[]> {
  if (!/^(?!.*\/\.\.?(?:\/|$))\/dev\/./.test(device)) throw new AppError('internal', `'${device}' is no device`)
  return access(device).then(
    () => [device],
    () => [],
  )
}

const realFolder = (folder: string): Promise<string> =>
  realpath(folder).catch((cause: unknown) => {
    throw new AppError('not_found', `there is no folder '${folder}'`, { cause })
  })

async function wrap(sandbox: Sandbox, { file, args, cwd, env, policy }: SpawnRequest): Promise<WrappedCommand> {
  try {
    return await sandbox.wrap({ file, args, cwd, env }, policy)
  } catch (cause) {
    if (cause instanceof AppError) throw cause
    throw new AppError('unavailable', `the sandbox '${sandbox.name}' failed: ${errorText(cause)}`, { cause })
  }
}
