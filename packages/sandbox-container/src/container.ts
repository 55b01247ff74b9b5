/** The `container` backend: each command in a container of Docker's or Podman's, gone with it (§2.7). */
import { randomUUID } from 'node:crypto'
import { existsSync } from 'node:fs'
import { basename } from 'node:path'
import { findProgram, hasProgram, signalScope } from '@sluice/kit'
import { AppError, errorText, type RunBare, type Sandbox, type SandboxProbe } from '@sluice/sdk'
import type { ContainerConfig } from './config.ts'
import { engineEnv, givenEnv } from './engine-env.ts'
import { runOptions } from './run-options.ts'

const TRIAL = { file: '/bin/sh', args: ['-c', ':'], cwd: '/tmp', env: {} }
const REMOVE_MS_MAX = 20_000

export function container({ engine, image }: ContainerConfig): Sandbox {
  let program: string | undefined
  const ask = (run: RunBare, signal: AbortSignal, ...args: string[]) =>
    run({ file: program ?? '', args, cwd: '/', env: engineEnv() }, signal)

  const sandbox: Sandbox = {
    name: 'container',
    strength: 10,

    async probe(signal, run): Promise<SandboxProbe> {
      const missing = (detail: string): SandboxProbe => ({ available: false, detail })
      const failing = (detail: string): SandboxProbe => ({ available: false, isInstalled: true, detail })
      program = await installed(engine)
      if (program === undefined) return missing(notInstalled({ engine }))
      const name = basename(program)
      const version = await ask(run, signal, 'version', '--format', name === 'podman' ? '{{.Client.Version}}' : '{{.Server.Version}}')
      if (version.exitCode !== 0) {
        const detail = `${name} does not answer (${firstLine(version.stderr)}): start its engine, and let this user use it`
        const isInstalled = !/permission denied/i.test(version.stderr) && hasEngine(name)
        return isInstalled ? failing(detail) : missing(detail)
      }
      const found = await ask(run, signal, 'image', 'inspect', '--format', '{{.Id}}', image)
      if (found.exitCode !== 0) return missing(`the image '${image}' is not here: ${name} pull ${image}`)
      const command = await sandbox.wrap(TRIAL, { writable: [], network: false })
      try {
        const { exitCode, stderr } = await run(command, signal)
        await command.release?.(run)
        if (exitCode !== 0) return failing(`${name} makes no container of '${image}' (${firstLine(stderr) || exitCode})`)
      } catch (error) {
        return failing(errorText(error))
      }
      return { available: true, detail: `${name} ${version.stdout.trim()}, image ${image}` }
    },

    wrap(command, policy) {
      if (program === undefined) throw new AppError('unavailable', 'container has not been tried on this machine')
      const name = `sluice-${randomUUID()}`
      const given = givenEnv(command.env)
      return {
        file: program,
        args: runOptions(command, policy, { name, image, user: sameUser(program), env: given.options }),
        cwd: '/',
        env: { ...given.env, ...engineEnv() },
        // what ends the engine's program does not end the container
        async release(run) {
          using limit = signalScope([], REMOVE_MS_MAX)
          const { exitCode, stderr } = await ask(run, limit.signal, 'rm', '--force', '--volumes', name)
          if (exitCode !== 0 && !/no such container/i.test(stderr)) {
            throw new AppError('unavailable', `the container ${name} could not be removed: ${firstLine(stderr)}`)
          }
        },
      }
    },
  }
  return sandbox
}

const engineNames = ({ engine }: Pick<ContainerConfig, 'engine'>): readonly string[] =>
  engine === 'auto' ? ['docker', 'podman'] : [engine]

const notInstalled = ({ engine }: Pick<ContainerConfig, 'engine'>): string =>
  `${engine === 'auto' ? 'neither docker nor podman' : `no ${engine}`} is installed: install one`

async function installed(engine: ContainerConfig['engine']): Promise<string | undefined> {
  for (const name of engineNames({ engine })) {
    const path = await findProgram(name)
    if (path !== undefined) return path
  }
  return undefined
}

/** Docker's program may be there without an engine, to control one elsewhere; Podman is its own engine. */
const hasEngine = (name: string): boolean =>
  name === 'podman' || Boolean(process.env.DOCKER_HOST) || existsSync('/var/run/docker.sock') || hasProgram('dockerd')

/** Says that there is no engine to ask; a quick look, as the probe asks it. */
export function missingRequirement(config: Pick<ContainerConfig, 'engine'>): string | undefined {
  const found = engineNames(config).find(hasProgram)
  if (found === undefined) return notInstalled(config)
  return hasEngine(found) ? undefined : `${found} is here without an engine: install or start one`
}

/** So that what it writes in the workspace belongs to who may read it there. */
function sameUser(program: string): string[] {
  const [user, group] = [process.getuid?.() ?? 0, process.getgid?.() ?? 0]
  const isRootless = basename(program) === 'podman' && user !== 0
  return [...(isRootless ? ['--userns=keep-id'] : []), `--user=${user}:${group}`]
}

const firstLine = (text: string): string => text.trim().split('\n')[0] ?? ''
