/** The `container` backend: runs each command in its own container of Docker or Podman, and removes the container afterwards. */
import { randomUUID } from 'node:crypto'
import { existsSync } from 'node:fs'
import { basename } from 'node:path'
import { findProgram, hasProgram, signalScope } from '@sluice/kit'
import {
  AppError,
  errorText,
  type ProcessCommand,
  type RunBare,
  type Sandbox,
  type SandboxPolicy,
  type SandboxProbe,
  type WrappedCommand,
} from '@sluice/sdk'
import type { ContainerConfig } from './config.ts'
import { containerEnv, engineEnv } from './engine-env.ts'
import { runOptions } from './run-options.ts'

type Engine = ContainerConfig['engine']

const TRIAL = { file: '/bin/sh', args: ['-c', ':'], cwd: '/tmp', env: {} }
const REMOVE_MS_MAX = 20_000

export class ContainerSandbox implements Sandbox {
  readonly name = 'container'
  readonly strength = 10
  readonly #engine: Engine
  readonly #image: string
  /** The path of the engine's program, once a probe found it. */
  #program: string | undefined

  constructor({ engine, image }: ContainerConfig) {
    this.#engine = engine
    this.#image = image
  }

  async probe(signal: AbortSignal, run: RunBare): Promise<SandboxProbe> {
    const missing = (detail: string): SandboxProbe => ({ available: false, detail })
    const failing = (detail: string): SandboxProbe => ({ available: false, isInstalled: true, detail })
    this.#program = await findEngine(this.#engine)
    if (this.#program === undefined) return missing(notInstalled(this.#engine))
    const name = basename(this.#program)
    const format = name === 'podman' ? '{{.Client.Version}}' : '{{.Server.Version}}'
    const version = await this.#call(run, signal, 'version', '--format', format)
    if (version.exitCode !== 0) {
      const detail = `${name} does not answer (${firstLine(version.stderr)}): start its engine, and allow this user to use it`
      const isInstalled = !/permission denied/i.test(version.stderr) && hasEngine(name)
      return isInstalled ? failing(detail) : missing(detail)
    }
    const found = await this.#call(run, signal, 'image', 'inspect', '--format', '{{.Id}}', this.#image)
    if (found.exitCode !== 0) return missing(`the image '${this.#image}' is missing: run \`${name} pull ${this.#image}\``)
    const fault = await this.#trialFault(signal, run, name)
    return fault === undefined ? { available: true, detail: `${name} ${version.stdout.trim()}, image ${this.#image}` } : failing(fault)
  }

  wrap(command: ProcessCommand, policy: SandboxPolicy): WrappedCommand {
    const program = this.#program
    if (program === undefined) throw new AppError('unavailable', 'The container sandbox was not probed on this machine')
    const name = `sluice-${randomUUID()}`
    const own = containerEnv(command.env)
    return {
      file: program,
      args: runOptions(command, policy, { name, image: this.#image, user: userOptions(program), env: own.options }),
      cwd: '/',
      env: { ...own.env, ...engineEnv() },
      // Killing the engine's program does not end the container.
      release: (run) => this.#remove(name, run),
    }
  }

  /** Runs a command in a container. Returns the reason why that failed, or undefined. */
  async #trialFault(signal: AbortSignal, run: RunBare, name: string): Promise<string | undefined> {
    try {
      const command = this.wrap(TRIAL, { writable: [], network: false })
      const { exitCode, stderr } = await run(command, signal)
      await command.release?.(run)
      return exitCode === 0 ? undefined : `${name} cannot create a container of '${this.#image}' (${firstLine(stderr) || exitCode})`
    } catch (error) {
      return errorText(error)
    }
  }

  async #remove(name: string, run: RunBare): Promise<void> {
    using limit = signalScope([], REMOVE_MS_MAX)
    const { exitCode, stderr } = await this.#call(run, limit.signal, 'rm', '--force', '--volumes', name)
    if (exitCode !== 0 && !/no such container/i.test(stderr)) {
      throw new AppError('unavailable', `The container ${name} could not be removed: ${firstLine(stderr)}`)
    }
  }

  #call(run: RunBare, signal: AbortSignal, ...args: string[]): ReturnType<RunBare> {
    return run({ file: this.#program ?? '', args, cwd: '/', env: engineEnv() }, signal)
  }
}

/** Returns the reason why this machine has no engine to call, or undefined. Unlike the probe, it starts no program. */
export function missingRequirement({ engine }: Pick<ContainerConfig, 'engine'>): string | undefined {
  const found = engineNames(engine).find(hasProgram)
  if (found === undefined) return notInstalled(engine)
  return hasEngine(found) ? undefined : `${found} is installed without an engine: install or start one`
}

const engineNames = (engine: Engine): readonly string[] => (engine === 'auto' ? ['docker', 'podman'] : [engine])

const notInstalled = (engine: Engine): string =>
  engine === 'auto' ? 'neither docker nor podman is installed: install one of them' : `${engine} is not installed: install it`

async function findEngine(engine: Engine): Promise<string | undefined> {
  for (const name of engineNames(engine)) {
    const path = await findProgram(name)
    if (path !== undefined) return path
  }
  return undefined
}

/** Docker's program may be installed without an engine, to control a remote one. Podman needs no separate engine. */
const hasEngine = (name: string): boolean =>
  name === 'podman' || Boolean(process.env.DOCKER_HOST) || existsSync('/var/run/docker.sock') || hasProgram('dockerd')

/** Runs the command as the daemon's user, so that the files it writes belong to that user. */
function userOptions(program: string): string[] {
  const [user, group] = [process.getuid?.() ?? 0, process.getgid?.() ?? 0]
  const isRootless = basename(program) === 'podman' && user !== 0
  return [...(isRootless ? ['--userns=keep-id'] : []), `--user=${user}:${group}`]
}

const firstLine = (text: string): string => text.trim().split('\n')[0] ?? ''
