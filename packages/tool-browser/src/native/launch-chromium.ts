/** Starts Chromium so that the egress proxy is its only access to the network. */
import { mkdir } from 'node:fs/promises'
import { AppError, errorText, type Services } from '@sluice/sdk'
import type { Browser } from 'playwright-core'
import { findChromium } from './find-chromium.ts'

const START_MS_MAX = 30_000
const PATH_DEFAULT = '/usr/local/bin:/usr/bin:/bin'

const ARGS = [
  '--disable-gpu',
  '--disable-sync',
  // An HTTP proxy cannot carry QUIC or other datagrams.
  '--disable-quic',
  '--webrtc-ip-handling-policy=disable_non_proxied_udp',
  // The same option in releases before 2024.
  '--force-webrtc-ip-handling-policy=disable_non_proxied_udp',
  // Chromium must not resolve names itself, because that would reveal them to the system's resolver.
  '--host-resolver-rules=MAP * ~NOTFOUND , EXCLUDE 127.0.0.1',
  '--dns-prefetch-disable',
  // Requests of Chromium itself that the library does not disable.
  '--autofill-server-url=http://autofill.invalid/',
  '--no-pings',
  '--deny-permission-prompts',
]

/** The environment variables that a browser with a window needs. */
const DESKTOP_VARIABLES = ['DISPLAY', 'WAYLAND_DISPLAY', 'XAUTHORITY', 'XDG_RUNTIME_DIR']

export type BrowserLibrary = Services['browserLibrary']

export interface ChromiumLaunch {
  readonly library: BrowserLibrary
  readonly headless: boolean
  readonly chromePath: string | undefined
  /** The URL of the egress proxy. */
  readonly proxyUrl: string
  /** The browser's home folder, created when it does not exist. */
  readonly home: string
}

/** Whether Chromium can sandbox its pages. It cannot as root. */
export const canSandboxPages = (): boolean => process.getuid?.() !== 0

/** Throws `unavailable` with a hint when Chromium or the library is missing, or Chromium does not start. */
export async function launchChromium({ library, headless, chromePath, proxyUrl, home }: ChromiumLaunch): Promise<Browser> {
  const executablePath = await findChromium(chromePath)
  const { chromium } = (await library.load()) as typeof import('playwright-core')
  await mkdir(home, { recursive: true, mode: 0o700 })
  try {
    return await chromium.launch({
      executablePath,
      headless,
      chromiumSandbox: canSandboxPages(),
      // By default Chromium connects to loopback addresses without the proxy.
      proxy: { server: proxyUrl, bypass: '<-loopback>' },
      args: ARGS,
      env: environment(home, headless),
      timeout: START_MS_MAX,
      // The daemon handles signals.
      handleSIGINT: false,
      handleSIGTERM: false,
      handleSIGHUP: false,
    })
  } catch (cause) {
    const [reason] = errorText(cause).split('\n')
    throw new AppError('unavailable', `${executablePath} does not start: ${reason}`, { cause })
  }
}

/** The browser does not inherit the daemon's other variables. */
function environment(home: string, headless: boolean): Record<string, string> {
  const { env } = process
  const desktop = (headless ? [] : DESKTOP_VARIABLES).flatMap((name) => (env[name] === undefined ? [] : [[name, env[name]] as const]))
  return { ...Object.fromEntries(desktop), HOME: home, PATH: env.PATH ?? PATH_DEFAULT, LANG: env.LANG ?? 'C.UTF-8' }
}
