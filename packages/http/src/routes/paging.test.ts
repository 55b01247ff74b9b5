import { expect, test } from 'vitest'
import { testGateways } from '../testing.ts'

const gateway = testGateways()

test.each(['/api/approvals', '/api/memories', '/api/sessions'])('GET %s refuses a cursor that it did not return', async (path) => {
  const { pair, request } = gateway()
  const { token } = await pair()
  const foreign = Buffer.from('["a",1,2]').toString('base64url')
  for (const cursor of ['x', foreign, encodeURIComponent('[]')]) {
    const response = await request(`${path}?cursor=${cursor}`, { headers: { authorization: `Bearer ${token}` } })
    expect([response.status, await response.json()]).toMatchObject([400, { code: 'invalid_request' }])
  }
})
