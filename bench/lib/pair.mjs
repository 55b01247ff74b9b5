// One value of the load results of both sides, with their CPU time for a unit of work.

export const pair = (ours, bare, key) => ({
  ours: ours[key],
  bare: bare[key],
  oursCpuUs: ours.cpuUs,
  bareCpuUs: bare.cpuUs,
  detail: { ours, bare },
})
