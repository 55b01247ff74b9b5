/** Checks this machine: the version of Node, the data directory and the room on its disk. */
import { accessSync } from 'node:fs'
import { access, constants, mkdir, stat, statfs } from 'node:fs/promises'
import { setGlobalProxyFromEnv } from 'node:http'
import { proxySettings } from '@sluice/kit/proxy'
import { errorText } from '@sluice/sdk'
import { NODE_MIN, nodeProblem } from '@sluice/sdk/node-version'
import { type Check, fail, ok, warn } from './check.ts'

const FREE_BYTES_MIN = 512 * 1024 * 1024
const MEBIBYTE = 1024 * 1024

export function checkNode(): Check {
  const { node } = process.versions
  const problem = nodeProblem(node)
  return problem === undefined ? ok('node', `Node ${node}`) : fail('node', problem, `install Node ${NODE_MIN} or newer`)
}

/** The proxy and the certificates that the environment names. */
export function checkNetwork(): Check[] {
  return [...checkProxy(), ...checkCertificates()]
}

function checkProxy(): Check[] {
  let proxy: ReturnType<typeof proxySettings>
  try {
    proxy = proxySettings()
  } catch (error) {
    return [fail('proxy', errorText(error), 'correct the variable, or remove it')]
  }
  if (!proxy) return []
  const { NO_PROXY, ...named } = proxy
  const shown = Object.entries(named).map(([name, url]) => `${new URL(url).origin} (${name})`)
  const detail = `requests go through ${shown.join(' and ')}, except to ${NO_PROXY.split(',').join(', ')}`
  if (typeof setGlobalProxyFromEnv === 'function') return [ok('proxy', detail)]
  const problem = `the environment names the proxy ${shown.join(' and ')}, which Node ${process.versions.node} cannot use for most requests`
  return [warn('proxy', problem, 'install Node 24.14 or newer, or set NODE_USE_ENV_PROXY=1 in the environment of the daemon')]
}

function checkCertificates(): Check[] {
  const file = process.env.NODE_EXTRA_CA_CERTS
  if (!file) return []
  try {
    accessSync(file, constants.R_OK)
    return [ok('certificates', `those in ${file} are trusted too (NODE_EXTRA_CA_CERTS)`)]
  } catch (error) {
    const detail = `the file ${file} of NODE_EXTRA_CA_CERTS cannot be read: ${errorText(error)}`
    return [fail('certificates', detail, 'name a readable file with certificates in PEM, and restart the daemon')]
  }
}

/** Makes the data directory if it does not exist. */
export async function checkDataDir(dataDir: string): Promise<Check[]> {
  try {
    await mkdir(dataDir, { recursive: true, mode: 0o700 })
    await access(dataDir, constants.R_OK | constants.W_OK | constants.X_OK)
    const { mode } = await stat(dataDir)
    const { bavail, bsize } = await statfs(dataDir)
    const freeBytes = Number(bavail) * Number(bsize)
    const isOpen = (mode & 0o077) !== 0
    const free = `${Math.round(freeBytes / MEBIBYTE)} MiB are free`
    return [
      isOpen ? warn('data directory', `other users can enter ${dataDir}`, `chmod 700 ${dataDir}`) : ok('data directory', dataDir),
      freeBytes < FREE_BYTES_MIN
        ? fail('disk', `${free} under ${dataDir}; accepted messages must fit`, 'free some space')
        : ok('disk', free),
    ]
  } catch (error) {
    return [unusable(dataDir, error)]
  }
}

function unusable(dataDir: string, error: unknown): Check {
  if ((error as NodeJS.ErrnoException).code === 'EROFS') {
    const fix = 'mount it for reading and writing; if the system made it read-only by itself, look for disk errors in the kernel log'
    return fail('data directory', `${dataDir} is on a file system that is mounted read-only`, fix)
  }
  return fail('data directory', `${dataDir}: ${errorText(error)}`, 'make it writable for this user, or name another with --data-dir')
}
