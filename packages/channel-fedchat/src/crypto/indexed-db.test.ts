import { expect, test } from 'vitest'
import { idb } from './idb-types.ts'
import { JournaledDatabase, type RecordChange, type SavedDatabase } from './indexed-db.ts'

const SUFFIX = '::matrix-sdk-crypto'

/** Opens a connection as the crypto library does. */
function connect(name: string): Promise<ReturnType<typeof idb.indexedDB.open>['result']> {
  const request = idb.indexedDB.open(`${name}${SUFFIX}`, 1)
  request.onupgradeneeded = () => {
    request.result
      .createObjectStore('keyed', { keyPath: 'id', autoIncrement: false })
      .createIndex('by room', 'room', { unique: false, multiEntry: false })
    request.result.createObjectStore('plain', { keyPath: null, autoIncrement: false })
  }
  return new Promise((resolve, reject) => {
    request.onsuccess = () => resolve(request.result)
    request.onerror = () => reject(request.error)
  })
}

async function arrange(name: string, saved?: SavedDatabase) {
  const database = await JournaledDatabase.reserve(name)
  const records = new Map<string, RecordChange>()
  const commits: number[] = []
  for (const record of saved?.records ?? []) records.set(`${record.store} ${record.key}`, record)
  await database.open(saved, (changes) => {
    commits.push(changes.length)
    for (const change of changes) {
      if (change.value === undefined) records.delete(`${change.store} ${change.key}`)
      else records.set(`${change.store} ${change.key}`, change)
    }
  })
  const db = await connect(name)
  const write = (
    change: (store: (name: string) => ReturnType<ReturnType<typeof db.transaction>['objectStore']>) => void,
  ): Promise<void> => {
    const transaction = db.transaction(['keyed', 'plain'], 'readwrite')
    return new Promise((resolve) => {
      change((store) => transaction.objectStore(store))
      transaction.addEventListener('complete', () => resolve())
    })
  }
  return {
    database,
    records,
    commits,
    write,
    saved: async (): Promise<SavedDatabase> => ({ shape: await database.shape(), records: [...records.values()] as never }),
  }
}

test('a database filled from its reported changes has the same shape and records', async () => {
  const first = await arrange('one')
  await first.write((store) => {
    store('keyed').put({ id: 'a', room: 1, bytes: new Uint8Array([1, 2]) })
    store('keyed').put({ id: 'b', room: 2 })
    store('plain').put('value', [1, 'x'])
    store('plain').put('other', 'k')
  })
  await first.write((store) => {
    store('plain').delete('k')
    store('keyed').put({ id: 'b', room: 3 })
  })
  expect(first.commits).toEqual([4, 2])
  const saved = await first.saved()
  expect(saved.shape.stores.find(({ name }) => name === 'keyed')).toMatchObject({
    keyPath: 'id',
    indexes: [{ name: 'by room', keyPath: 'room' }],
  })
  await first.database.drop()

  const second = await arrange('one', saved)
  expect(await second.saved()).toEqual(saved)
  expect(second.commits).toEqual([])
  // The deletion of all records also covers the saved database.
  await second.write((store) => {
    store('keyed').clear()
    store('plain').put('new', 'n')
  })
  expect(second.commits).toEqual([3])
  expect([...second.records.values()].map(({ store }) => store).sort()).toEqual(['plain', 'plain'])
  await second.database.drop()
})

test('an owner waits until the one before has dropped the database', async () => {
  const first = await arrange('shared')
  let isReserved = false
  const next = JournaledDatabase.reserve('shared').then((database) => {
    isReserved = true
    return database
  })
  await new Promise((resolve) => setImmediate(resolve))
  expect(isReserved).toBe(false)
  await first.database.drop()
  await (await next).drop()
  expect(isReserved).toBe(true)
})
