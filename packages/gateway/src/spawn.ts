/** The only way to start a process: sandboxed, with nothing inherited, ended for certain (§2.6 `[security.sandbox]`). */
import { access, mkdir, realpath } from 'node:fs/promises'
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
  readonly log: Logger
  readonly clock: Clock
}

/**
 * Folders of `policy.writable` that are missing are made, for their owner alone, and the sandbox gets them and the working
 * folder without links.
 */
export function createSpawn({ sandbox, required, limits, log, clock }: SpawnOptions): Spawn {
  const run = createRunBare(clock)
  return async (request) => {
    const chosen = await sandbox()
    const command = await wrap(chosen, await prepare(request, limits))
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
