/** Starts Chromium so that nothing leaves it but by the egress proxy. */
import { mkdir } from 'node:fs/promises'
import { AppError, errorText } from '@sluice/sdk'
import type { Browser } from 'playwright-core'
import { findChromium } from './find-chromium.ts'
import { loadPlaywright } from './load-playwright.ts'

const START_MS_MAX = 30_000

const ARGS = [
  '--disable-gpu',
  '--disable-sync',
  // What no HTTP proxy can carry, it shall not try.
  '--disable-quic',
  '--webrtc-ip-handling-policy=disable_non_proxied_udp',
  // The same, as releases before 2024 spell it.
  '--force-webrtc-ip-handling-policy=disable_non_proxied_udp',
  // It looks no name up, and so tells no resolver what it is about to load.
  '--host-resolver-rules=MAP * ~NOTFOUND , EXCLUDE 127.0.0.1',
  '--dns-prefetch-disable',
  // Its own errands, beside what the library turns off.
  '--autofill-server-url=http://autofill.invalid/',
  '--no-pings',
  '--deny-permission-prompts',
]

/** What a browser with a window has to know of the desktop. */
const DESKTOP = ['DISPLAY', 'WAYLAND_DISPLAY', 'XAUTHORITY', 'XDG_RUNTIME_DIR']

export interface LaunchOptions {
  readonly headless: boolean
  readonly chromePath: string | undefined
  /** Of the egress proxy. */
  readonly proxyUrl: string
  /** The browser's home; made if it is not there. */
  readonly home: string
}

/** As root Chromium cannot confine its pages; else it does or does not start. */
export const isConfining = (): boolean => process.getuid?.() !== 0

/** Throws `unavailable` with what to do. */
export async function launchChromium({ headless, chromePath, proxyUrl, home }: LaunchOptions): Promise<Browser> {
  const executablePath = await findChromium(chromePath)
  const { chromium } = await loadPlaywright()
  await mkdir(home, { recursive: true, mode: 0o700 })
  try {
    return await chromium.launch({
      executablePath,
      headless,
      chromiumSandbox: isConfining(),
      // Without the exception Chromium goes to loopback addresses by itself.
      proxy: { server: proxyUrl, bypass: '<-loopback>' },
      args: ARGS,
      env: environment(home, headless),
      timeout: START_MS_MAX,
      // Signals are the daemon's to handle.
      handleSIGINT: false,
      handleSIGTERM: false,
      handleSIGHUP: false,
    })
  } catch (cause) {
    const [why] = errorText(cause).split('\n')
    throw new AppError('unavailable', `${executablePath} does not start: ${why}`, { cause })
  }
}

/** All the browser sees of the daemon's environment. */
function environment(home: string, headless: boolean): Record<string, string> {
  const { env } = process
  const passed = (headless ? [] : DESKTOP).flatMap((name) => (env[name] === undefined ? [] : [[name, env[name]] as const]))
  return { ...Object.fromEntries(passed), HOME: home, PATH: env.PATH ?? '/usr/local/bin:/usr/bin:/bin', LANG: env.LANG ?? 'C.UTF-8' }
}
