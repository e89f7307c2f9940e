-- The shop's own tables, for PostgreSQL and SQLite alike. They lie beside those of Intact, so that an order and its task are
-- written in one transaction. Money is in cents.

CREATE TABLE IF NOT EXISTS shop_product (
    sku TEXT PRIMARY KEY,
    name TEXT NOT NULL,
    about TEXT NOT NULL,
    price INTEGER NOT NULL,
    picture TEXT NOT NULL -- a file of web/static
);

-- Written by the submission process, together with the task of the same id.
CREATE TABLE IF NOT EXISTS shop_order (
    id TEXT PRIMARY KEY,
    lines TEXT NOT NULL, -- JSON: [{"sku", "quantity"}]
    amount INTEGER NOT NULL,
    card TEXT NOT NULL, -- its last four digits
    address TEXT NOT NULL,
    placed_at TEXT NOT NULL,
    customer TEXT NOT NULL,
    pay TEXT NOT NULL -- now, later, or a day
);

-- What the shop was told by its reply queue, and all that it knows of how its orders get on.
CREATE TABLE IF NOT EXISTS shop_news (
    id TEXT PRIMARY KEY,      -- of the message: the same one may come twice
    order_id TEXT NOT NULL,
    sequence TEXT NOT NULL,   -- in this order
    event TEXT NOT NULL,      -- "intact.task.received", ...
    at TEXT NOT NULL,         -- when it happened
    told TEXT NOT NULL,       -- the message's data, JSON
    waits_for TEXT NOT NULL   -- of intact.task.waiting: lock, wait, signal or approve; else empty
);

CREATE INDEX IF NOT EXISTS shop_news_order ON shop_news (order_id, sequence);

-- Whom the shop has reminded, each run of the schedule once.
CREATE TABLE IF NOT EXISTS shop_reminder (
    run TEXT NOT NULL,        -- the task's id
    order_id TEXT NOT NULL,
    waits_for TEXT NOT NULL,  -- approve: staff; signal: the customer, who has not paid yet
    at TEXT NOT NULL,
    PRIMARY KEY (run, order_id)
);

INSERT INTO shop_product (sku, name, about, price, picture) VALUES
    ('kettle', 'Kettle', 'Whistles when it is done, which is more than most of us do.', 3900, 'kettle.svg'),
    ('teapot', 'Teapot', 'Short and stout. Holds six cups.', 2400, 'teapot.svg'),
    ('cup', 'Cup', 'For one. Comes with a saucer.', 950, 'cup.svg'),
    ('lamp', 'Lamp', 'Reads with you until late.', 5200, 'lamp.svg'),
    ('chair', 'Chair', 'Four legs, as it should be.', 8900, 'chair.svg'),
    ('clock', 'Clock', 'Right twice a day, and in between as well.', 4500, 'clock.svg')
ON CONFLICT (sku) DO NOTHING;
