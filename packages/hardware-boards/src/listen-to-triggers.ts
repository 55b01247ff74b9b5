/** Keeps the lines open whose signals a procedure waits for, and no others. */
import type { Host, Sops } from '@sluice/sdk'
import type { Registry } from './registry/registry.ts'

/** How often the engine is looked for, which may be ready after us. */
const ENGINE_LOOK_MS = 1000

/** Resolves when `signal` aborts. */
export async function listenToTriggers(host: Host, registry: Pick<Registry, 'listenTo'>, signal: AbortSignal): Promise<void> {
  const sops = await engineOf(host, signal)
  if (!sops) return
  const follow = (): void => registry.listenTo(new Set(sops.topics('peripheral').map((topic) => topic.slice(0, topic.indexOf('/')))))
  const stop = sops.onReload(follow)
  signal.addEventListener('abort', stop, { once: true })
  follow()
}

async function engineOf(host: Host, signal: AbortSignal): Promise<Sops | undefined> {
  while (!signal.aborted) {
    const sops = host.service('sops')
    if (sops) return sops
    await host.clock.sleep(ENGINE_LOOK_MS, signal)
  }
  return undefined
}
