/** What code can change for everything else that runs in its process. */
import childProcess from 'node:child_process'
import dns from 'node:dns'
import dnsPromises from 'node:dns/promises'
import fs from 'node:fs'
import fsPromises from 'node:fs/promises'
import http from 'node:http'
import https from 'node:https'
import net from 'node:net'
import os from 'node:os'
import tls from 'node:tls'

export interface ProcessState {
  /** Restores every property, listener and setting that has changed since. Returns their names, sorted. */
  restore(): string[]
}

/** Objects whose own properties are compared. */
const OBJECTS: Readonly<Record<string, object>> = {
  globalThis,
  console,
  process,
  'process.env': process.env,
  performance,
  Math,
  JSON,
  Reflect,
  Date,
  'Date.prototype': Date.prototype,
  Error,
  Object,
  'Object.prototype': Object.prototype,
  Array,
  'Array.prototype': Array.prototype,
  'String.prototype': String.prototype,
  Promise,
  'Promise.prototype': Promise.prototype,
  'RegExp.prototype': RegExp.prototype,
  'EventTarget.prototype': EventTarget.prototype,
  'Request.prototype': Request.prototype,
  'Response.prototype': Response.prototype,
  crypto,
  childProcess,
  dns,
  dnsPromises,
  fs,
  fsPromises,
  http,
  https,
  net,
  os,
  tls,
}

/** Properties that say nothing about a file: Node and vitest change them, or a library adds them when it is loaded, which it stays. */
const VOLATILE: ReadonlySet<string> = new Set([
  'globalThis.__vitest_worker__',
  'globalThis.__zod_globalConfig',
  'globalThis.__zod_globalRegistry',
  'globalThis.localStorage',
  'globalThis.regeneratorRuntime',
  'globalThis.sessionStorage',
  'process._eventsCount',
  'process._exiting',
  'process.allowedNodeEnvironmentFlags',
  'process.exitCode',
])

type Properties = ReadonlyMap<string | symbol, PropertyDescriptor>

const nameOf = (object: string, key: string | symbol): string =>
  typeof key === 'symbol' ? `${object}[${String(key)}]` : `${object}.${key}`

/** Node creates some globals when they are first read; reading them all first makes two snapshots comparable. */
function readLazyGlobals(): void {
  for (const key of Object.getOwnPropertyNames(globalThis))
    if (!VOLATILE.has(`globalThis.${key}`)) void (globalThis as Readonly<Record<string, unknown>>)[key]
}

function propertiesOf(object: object, name: string): Properties {
  const found = new Map<string | symbol, PropertyDescriptor>()
  for (const key of Reflect.ownKeys(object)) {
    const descriptor = Reflect.getOwnPropertyDescriptor(object, key)
    if (descriptor && !VOLATILE.has(nameOf(name, key))) found.set(key, descriptor)
  }
  return found
}

const isSame = (one: PropertyDescriptor, other: PropertyDescriptor): boolean =>
  Object.is(one.value, other.value) && one.get === other.get && one.set === other.set

/** Registries that a library keeps for all its copies in a process, below a key that no other code uses. */
const isRegistry = (key: string | symbol): boolean => typeof key === 'symbol' && Symbol.keyFor(key) !== undefined

/** Takes the state of this process as it is now. */
export function processState(): ProcessState {
  readLazyGlobals()
  const objects = Object.entries(OBJECTS).map(([name, object]) => ({ name, object, properties: propertiesOf(object, name) }))
  const listeners = new Map(process.eventNames().map((event) => [event, process.rawListeners(event as string)]))
  // A listener for the end of the process, such as one that ends a child, does nothing while files run.
  const events = () => process.eventNames().filter((event) => event !== 'exit')
  const folder = process.cwd()
  const mask = process.umask()
  const { exitCode } = process
  const priority = os.getPriority()
  return {
    restore: () => {
      const restored = objects.flatMap(({ name, object, properties }) => restoreProperties(object, name, properties))
      for (const event of events()) {
        const known = listeners.get(event) ?? []
        for (const listener of process.rawListeners(event as string)) {
          if (known.includes(listener)) continue
          process.removeListener(event as string, listener as (...args: unknown[]) => void)
          restored.push(`a listener of process for ${String(event)}`)
        }
      }
      if (process.cwd() !== folder) {
        process.chdir(folder)
        restored.push('the working directory')
      }
      if (process.umask(mask) !== mask) restored.push('the umask')
      // Only root can raise a priority again, so it stays.
      if (os.getPriority() !== priority) restored.push('the priority')
      if (process.exitCode !== exitCode) {
        process.exitCode = exitCode
        restored.push('process.exitCode')
      }
      return restored.sort()
    },
  }
}

function restoreProperties(object: object, name: string, properties: Properties): string[] {
  const restored: string[] = []
  const now = propertiesOf(object, name)
  for (const [key, descriptor] of properties) {
    const present = now.get(key)
    if (present && isSame(present, descriptor)) continue
    Reflect.defineProperty(object, key, descriptor)
    restored.push(nameOf(name, key))
  }
  for (const key of now.keys()) {
    if (properties.has(key) || isRegistry(key)) continue
    Reflect.deleteProperty(object, key)
    restored.push(nameOf(name, key))
  }
  return restored
}
