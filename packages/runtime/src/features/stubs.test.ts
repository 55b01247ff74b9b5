import { expect, test } from 'vitest'
import { leftOutTools } from './stubs.ts'

test('a tool of a left-out feature refuses with the build command', async () => {
  const stub = leftOutTools([], new Set()).find(({ tool }) => tool.name === 'hardware_memory_read')
  expect(stub).toMatchObject({ feature: 'hardware-probe', build: 'npm run build -- full --features probe' })
  const refusal = Promise.resolve(stub?.tool.run({}, undefined as never))
  await expect(refusal).rejects.toMatchObject({
    code: 'not_compiled',
    message: expect.stringContaining('npm run build -- full --features probe'),
    fields: { feature: 'hardware-probe' },
  })
})
