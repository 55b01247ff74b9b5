/** A backend whose driver is loaded with its first action, so that having it costs nothing before. */
import type { Backend, Driver } from './backend.ts'

export function lazyBackend({ name, actions, load }: Pick<Backend, 'name' | 'actions'> & { load(): Promise<Driver> }): Backend {
  let loaded: Promise<Driver> | undefined
  const driver = () => {
    loaded ??= load()
    return loaded
  }
  return {
    name,
    actions,
    run: async (action, call) => (await driver()).run(action, call),
    check: async (signal) => (await driver()).check(signal),
    close: async () => (await loaded)?.close(),
  }
}
