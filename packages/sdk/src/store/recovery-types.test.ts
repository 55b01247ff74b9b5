import { expectTypeOf, test } from 'vitest'
import type { OwnedStore, Store } from './store.ts'

// The type checker, not the test runner, fails when the first store gets one of these methods.
test('recovery without a lease does not compile', () => {
  expectTypeOf<Store['inbox']>().not.toHaveProperty('waiting')
  expectTypeOf<Store['outbox']>().not.toHaveProperty('waiting')
  expectTypeOf<Store['outbox']>().not.toHaveProperty('recover')
  expectTypeOf<Store['turns']>().not.toHaveProperty('unfinished')
  expectTypeOf<Store['turns']>().not.toHaveProperty('abortsRequested')
  expectTypeOf<Store['approvals']>().not.toHaveProperty('unfinished')
  expectTypeOf<Store['sops']>().not.toHaveProperty('unfinished')
  expectTypeOf<OwnedStore['inbox']>().toHaveProperty('waiting')
  expectTypeOf<OwnedStore['outbox']>().toHaveProperty('waiting')
  expectTypeOf<OwnedStore['outbox']>().toHaveProperty('recover')
  expectTypeOf<OwnedStore['turns']>().toHaveProperty('unfinished')
  expectTypeOf<OwnedStore['turns']>().toHaveProperty('abortsRequested')
  expectTypeOf<OwnedStore['approvals']>().toHaveProperty('unfinished')
  expectTypeOf<OwnedStore['sops']>().toHaveProperty('unfinished')
})
