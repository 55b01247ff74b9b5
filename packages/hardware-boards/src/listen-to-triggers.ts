/** Keeps the lines open whose signals a procedure waits for, and no others, and lets their boards watch the pins that are meant. */
import type { Host, Sops } from '@sluice/sdk'
import type { Registry } from './registry/registry.ts'

/** How often the engine is looked for, which may be ready after us. */
const ENGINE_LOOK_MS = 1000

/** Resolves when `signal` aborts. */
export async function listenToTriggers(host: Host, registry: Pick<Registry, 'listenTo'>, signal: AbortSignal): Promise<void> {
  const sops = await engineOf(host, signal)
  if (!sops) return
  const follow = (): void => registry.listenTo(signalsIn(sops.topics('peripheral')))
  const stop = sops.onReload(follow)
  signal.addEventListener('abort', stop, { once: true })
  follow()
}

/** `board_b0/button`: the name of a board has no slash. */
function signalsIn(topics: readonly string[]): ReadonlyMap<string, ReadonlySet<string>> {
  const signals = new Map<string, Set<string>>()
  for (const topic of topics) {
    const end = topic.indexOf('/')
    const alias = topic.slice(0, end)
    signals.set(alias, (signals.get(alias) ?? new Set()).add(topic.slice(end + 1)))
  }
  return signals
}

async function engineOf(host: Host, signal: AbortSignal): Promise<Sops | undefined> {
  while (!signal.aborted) {
    const sops = host.service('sops')
    if (sops) return sops
    await host.clock.sleep(ENGINE_LOOK_MS, signal)
  }
  return undefined
}
