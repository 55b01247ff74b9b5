/** Finds npm and the settings that it needs to install packages for the Node of this process. */
import { existsSync } from 'node:fs'
import { readFile, realpath } from 'node:fs/promises'
import { delimiter, dirname, join } from 'node:path'
import { findProgram } from '@sluice/kit'

/** Returns the program and the first arguments of npm, run by this Node where that is possible; undefined without npm. */
export async function findNpm(): Promise<readonly string[] | undefined> {
  const folder = dirname(process.execPath)
  const near = [join(folder, '..', 'lib'), folder].map((place) => join(place, 'node_modules', 'npm', 'bin', 'npm-cli.js'))
  const script = near.find((file) => existsSync(file))
  if (script) return [process.execPath, script]
  const program = await findProgram('npm')
  if (!program) return undefined
  const target = await realpath(program)
  return target.endsWith('.js') ? [process.execPath, target] : [program]
}

/** Returns the folder above the C++ headers of this Node, which native packages are compiled with; undefined when they are missing. */
export async function headersFolder(): Promise<string | undefined> {
  const prefix = dirname(dirname(process.execPath))
  const text = await readFile(join(prefix, 'include', 'node', 'node_version.h'), 'utf8').catch(() => '')
  const [, major] = /#define NODE_MAJOR_VERSION (\d+)/.exec(text) ?? []
  return major === process.versions.node.split('.')[0] ? prefix : undefined
}

/** Returns the environment of npm: scripts run with this Node and compile with its headers. */
export const npmEnvironment = (env: NodeJS.ProcessEnv, headers: string | undefined): NodeJS.ProcessEnv => ({
  ...env,
  PATH: [dirname(process.execPath), env.PATH].filter(Boolean).join(delimiter),
  npm_config_update_notifier: 'false',
  ...(headers === undefined ? {} : { npm_config_nodedir: headers }),
})
