/** The environment of the engine's own program, and what of a command's own goes with it. */
import { splitEnv } from '@sluice/sandbox-common'

/** Of the daemon's environment: what says where the engine is. */
const OF_THE_DAEMON = [
  'PATH',
  'HOME',
  'XDG_RUNTIME_DIR',
  'XDG_CONFIG_HOME',
  'DOCKER_HOST',
  'DOCKER_CONTEXT',
  'DOCKER_CONFIG',
  'DOCKER_CERT_PATH',
  'DOCKER_TLS_VERIFY',
  'CONTAINER_HOST',
  'CONTAINERS_CONF',
  'CONTAINERS_STORAGE_CONF',
]

/** What the engine's program would take for itself. */
const MEANT_FOR_ENGINES =
  /^(?:PATH|HOME|USER|DOCKER_.*|CONTAINER.*|PODMAN.*|BUILDAH.*|BUILDKIT.*|REGISTRY_.*|STORAGE_.*|XDG_.*|DBUS_.*|SSH_.*|SSL_.*|GO.*|.*_proxy)$/i

export const engineEnv = (): Record<string, string> =>
  Object.fromEntries(
    OF_THE_DAEMON.flatMap((name) => {
      const value = process.env[name]
      return value === undefined ? [] : [[name, value]]
    }),
  )

/**
 * Options and environment that give a command its own: by name, with the value in the environment of the engine's program,
 * where nobody else reads it; by value only what would change that program.
 */
export function givenEnv(env: Readonly<Record<string, string>>): { readonly options: string[]; readonly env: Record<string, string> } {
  const { outside, inside } = splitEnv(env)
  const entries = Object.entries(outside)
  const byValue = [...Object.entries(inside), ...entries.filter(([name]) => MEANT_FOR_ENGINES.test(name))]
  const byName = entries.filter(([name]) => !MEANT_FOR_ENGINES.test(name))
  return {
    options: [...byValue.map(([name, value]) => `--env=${name}=${value}`), ...byName.map(([name]) => `--env=${name}`)],
    env: Object.fromEntries(byName),
  }
}
