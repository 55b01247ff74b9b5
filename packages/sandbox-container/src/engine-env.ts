/** The environment of the engine's program and of the command in the container. */
import { splitEnv } from '@sluice/sandbox-common'

/** The variables of the daemon's environment by which the program finds its engine. */
const ENGINE_VARIABLES = [
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

/** Variables that the engine's program would use itself. */
const USED_BY_ENGINES =
  /^(?:PATH|HOME|USER|DOCKER_.*|CONTAINER.*|PODMAN.*|BUILDAH.*|BUILDKIT.*|REGISTRY_.*|STORAGE_.*|XDG_.*|DBUS_.*|SSH_.*|SSL_.*|GO.*|.*_proxy)$/i

/** Returns the environment of the engine's program. */
export const engineEnv = (): Record<string, string> =>
  Object.fromEntries(
    ENGINE_VARIABLES.flatMap((name) => {
      const value = process.env[name]
      return value === undefined ? [] : [[name, value]]
    }),
  )

/**
 * Returns the options and the environment of the engine's program that pass a command its variables. An option contains only
 * the name of a variable, and the program's environment the value, which other users cannot read. Variables that would
 * change the program are the exception: their options contain the value.
 */
export function containerEnv(env: Readonly<Record<string, string>>): { readonly options: string[]; readonly env: Record<string, string> } {
  const { outside, inside } = splitEnv(env)
  const entries = Object.entries(outside)
  const byValue = [...Object.entries(inside), ...entries.filter(([name]) => USED_BY_ENGINES.test(name))]
  const byName = entries.filter(([name]) => !USED_BY_ENGINES.test(name))
  return {
    options: [...byValue.map(([name, value]) => `--env=${name}=${value}`), ...byName.map(([name]) => `--env=${name}`)],
    env: Object.fromEntries(byName),
  }
}
