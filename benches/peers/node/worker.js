'use strict'
// A worker process of run.py for the peers on npm. Its arguments and its words are told in README.md.

const fs = require('node:fs')
const readline = require('node:readline')

const [peer, url, name, limit, waiters, rounds, holdMs, file] = process.argv
  .slice(2)
  .map((word, at) => (at >= 3 && at <= 6 ? Number(word) : word))

const now = () => process.hrtime.bigint() // CLOCK_MONOTONIC, in nanoseconds
const sleep = ms => new Promise(resolve => setTimeout(resolve, ms))

/** Each peer: a way to run work under a permit of a semaphore with this name. */
const PEERS = {
  'redis-semaphore': () => {
    const { Semaphore } = require('redis-semaphore')
    const Redis = require('ioredis')
    const client = new Redis(url)
    // The defaults, but for the patience: whoever waits longer than 10 s would be sent away.
    const options = { acquireTimeout: 600_000 }
    return (key, permits) => async work => {
      const semaphore = new Semaphore(client, key, permits, options)
      await semaphore.acquire()
      await work()
      await semaphore.release()
    }
  },

  bottleneck: () => {
    const Bottleneck = require('bottleneck')
    const Redis = require('ioredis')
    const { hostname: host, port } = new URL(url)
    return (id, maxConcurrent) => {
      const clientOptions = { host, port: Number(port) }
      const limiter = new Bottleneck({ id, maxConcurrent, datastore: 'ioredis', Redis, clientOptions })
      limiter.on('error', error => console.error(error))
      // It is recommended to give each job an expiration, or those of a crashed process count for ever.
      return work => limiter.schedule({ expiration: 10_000 }, work)
    }
  }
}

const records = []

async function wait(underPermit) {
  for (let round = 0; round < rounds; round++) {
    const record = [now(), 0n, 0n]
    records.push(record)
    try {
      await underPermit(async () => {
        record[1] = now()
        await sleep(holdMs)
        record[2] = now()
      })
    } catch (error) {
      console.error(`${peer}: ${error}`)
    }
  }
}

function finish() {
  fs.writeFileSync(file, records.map(record => record.join(' ') + '\n').join(''))
  console.log('done')
}

async function main() {
  const semaphore = PEERS[peer]()
  const warm = semaphore(`warm-${process.pid}`, 1)
  for (let pair = 0; pair < 50; pair++) await warm(async () => {})
  const underPermit = semaphore(name, limit)
  // Its connection and its scripts are there before anybody is timed, and its settings are stored.
  await underPermit(async () => {})
  console.log('ready')
  readline.createInterface({ input: process.stdin }).on('line', async order => {
    if (order === 'go') {
      await Promise.all(Array.from({ length: waiters }, () => wait(underPermit)))
    }
    finish() // also when told to stop in between
    process.exit(0)
  })
}

main()
