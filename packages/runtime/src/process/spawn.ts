/** `Host.spawn`: runs a command in the sandbox, with the environment it was given only, within the limits of the configuration. */
import { access, mkdir, realpath } from 'node:fs/promises'
import { sep } from 'node:path'
import type { SandboxConfig } from '@sluice/config'
import {
  AppError,
  type Clock,
  errorText,
  type Logger,
  type Sandbox,
  type SandboxPolicy,
  type Spawn,
  type SpawnRequest,
  type WrappedCommand,
} from '@sluice/sdk'
import type { NoteCommand } from './left-commands.ts'
import { createRunBare, runProcess } from './run-process.ts'

const MEBIBYTE = 1024 * 1024

/** The resources that one command may use. */
export interface CommandLimits {
  readonly memoryBytesMax: number
  readonly processesMax: number
  readonly fileBytesMax: number
  readonly cpuSecsMax: number
}

/** The limits of `[security.sandbox]`. */
export const commandLimits = (config: SandboxConfig): CommandLimits => ({
  memoryBytesMax: config.max_memory_mb * MEBIBYTE,
  processesMax: config.max_processes,
  fileBytesMax: config.max_file_mb * MEBIBYTE,
  cpuSecsMax: config.max_cpu_secs,
})

export interface SpawnOptions {
  /** The chosen sandbox; the first command waits for the choice. */
  readonly sandbox: () => Sandbox | Promise<Sandbox>
  /** `[security.sandbox] required`: without isolation no command runs. */
  readonly required: boolean
  readonly limits: CommandLimits
  /** The workspaces of the agents. */
  readonly workspaces: readonly string[]
  /** Called before a command runs that sees this workspace: attachments of an earlier release must not lie in it. */
  settle?(workspace: string): Promise<void>
  /** Folders from which the daemon reads keys, settings or code: no sandbox protects them inside a writable folder. */
  readonly closed: readonly string[]
  /** Notes the running commands for the next start of the daemon. */
  readonly note?: NoteCommand
  readonly log: Logger
  readonly clock: Clock
}

/**
 * Missing folders of `policy.writable`, and a missing workspace that is the working folder, are made with mode 0700. The sandbox gets them, and the working folder, as paths
 * without links. A command gets the tighter of the limits it asks for and the configured ones.
 */
export function createSpawn({ sandbox, required, limits, workspaces, settle, closed, note, log, clock }: SpawnOptions): Spawn {
  const runBare = createRunBare(clock)
  return async (request) => {
    const chosen = await sandbox()
    if (workspaces.includes(request.cwd)) await makeFolder(request.cwd)
    if (settle) await settleSeen(request, workspaces, settle)
    const prepared = await prepare(request, limits)
    if (chosen.strength > 0) await checkClosed(prepared.policy.writable, closed)
    const command = await wrap(chosen, prepared)
    try {
      if (required && chosen.strength === 0) throw new AppError('unavailable', 'a sandbox is required, and none works on this machine')
      if (request.signal.aborted) throw new AppError('aborted', `'${request.file}' was not started`)
      return { ...(await runProcess(command, request, clock, note)), sandbox: chosen.name }
    } finally {
      await command.release?.(runBare).catch((error: unknown) => log.warn('sandbox cleanup failed', { sandbox: chosen.name, error }))
    }
  }
}

/** Settles the workspaces that the command runs in or can write in. */
async function settleSeen({ cwd, policy }: SpawnRequest, workspaces: readonly string[], settle: (workspace: string) => Promise<void>) {
  const seen = [cwd, ...policy.writable].map((folder) => (folder.endsWith(sep) ? folder : folder + sep))
  const isSeen = (workspace: string) => seen.some((folder) => `${workspace}${sep}`.startsWith(folder) || folder.startsWith(workspace + sep))
  for (const workspace of workspaces.filter(isSeen)) {
    await settle(workspace).catch((cause: unknown) => {
      throw new AppError('unavailable', `the attachments of '${workspace}' could not be moved out of it: ${errorText(cause)}`, { cause })
    })
  }
}

async function prepare(request: SpawnRequest, limits: CommandLimits): Promise<SpawnRequest> {
  const writable: string[] = []
  for (const folder of request.policy.writable) {
    await makeFolder(folder)
    writable.push(await realFolder(folder))
  }
  const devices = await Promise.all((request.policy.devices ?? []).map(existingDevice))
  const readable = await Promise.all((request.policy.readable ?? []).map((folder) => realpath(folder).catch(() => [])))
  const policy = {
    ...request.policy,
    writable,
    ...(readable.length > 0 && { readable: readable.flat() }),
    ...(devices.length > 0 && { devices: devices.flat() }),
  }
  return { ...request, cwd: await realFolder(request.cwd), policy: tightened(policy, limits) }
}

async function makeFolder(folder: string): Promise<void> {
  await mkdir(folder, { recursive: true, mode: 0o700 }).catch((cause: unknown) => {
    throw new AppError('unavailable', `the folder '${folder}' could not be made`, { cause })
  })
}

/** The policy with the tighter of its own limits and `limits`. */
const tightened = (policy: SandboxPolicy, limits: CommandLimits): SandboxPolicy => ({
  ...policy,
  memoryBytesMax: Math.min(policy.memoryBytesMax ?? Number.POSITIVE_INFINITY, limits.memoryBytesMax),
  processesMax: Math.min(policy.processesMax ?? Number.POSITIVE_INFINITY, limits.processesMax),
  fileBytesMax: Math.min(policy.fileBytesMax ?? Number.POSITIVE_INFINITY, limits.fileBytesMax),
  cpuSecsMax: Math.min(policy.cpuSecsMax ?? Number.POSITIVE_INFINITY, limits.cpuSecsMax),
})

/** Throws `forbidden` if a command could write in one of the closed folders. */
async function checkClosed(writable: readonly string[], closed: readonly string[]): Promise<void> {
  const protectedFolders = await Promise.all(closed.map((folder) => realpath(folder).catch(() => folder)))
  for (const folder of writable) {
    const found = protectedFolders.find((path) => path === folder || path.startsWith(folder.endsWith(sep) ? folder : folder + sep))
    if (found === undefined) continue
    throw new AppError(
      'forbidden',
      `no command runs: '${folder}' holds '${found}', where a command could change what the daemon runs. Set [agent] workspace to a folder without it.`,
    )
  }
}

/** The device in a list, or an empty list if it does not exist. Throws `internal` for a path that is not below /dev. */
async function existingDevice(device: string): Promise<string[]> {
  if (!/^(?!.*\/\.\.?(?:\/|$))\/dev\/./.test(device)) throw new AppError('internal', `'${device}' is not a device below /dev`)
  return access(device).then(
    () => [device],
    () => [],
  )
}

const realFolder = (folder: string): Promise<string> =>
  realpath(folder).catch((cause: unknown) => {
    throw new AppError('not_found', `the folder '${folder}' does not exist`, { cause })
  })

async function wrap(sandbox: Sandbox, { file, args, cwd, env, policy }: SpawnRequest): Promise<WrappedCommand> {
  try {
    return await sandbox.wrap({ file, args, cwd, env }, policy)
  } catch (cause) {
    if (cause instanceof AppError) throw cause
    throw new AppError('unavailable', `the sandbox '${sandbox.name}' failed: ${errorText(cause)}`, { cause })
  }
}
